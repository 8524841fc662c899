# The one place that pins the toolchain.
set(BRAID_LLVM_VERSION 22.1)
set(BRAID_LLVM_MAJOR 22)
