//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Converts a bundle for GPUs to one that runs on a machine without a GPU. Each architecture's code
// is replaced by a host library, compiled from the same source, that runs the threads of a block as
// fibers (cuda_on_host.h). The null device (test/lib/NullDevice) loads it.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/CudaKernels.h"
#include "test/lib/cuda-on-host/HostCompiler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace braid;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<bundle for GPUs>"));
static cl::opt<std::string> output("o", cl::Required, cl::desc("Where the bundle goes"));

static std::string textOf(const runtime::Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// The source, with a function for every kernel, those of the library included, that NullLaunch.h
/// describes and that has the kernel's name.
static std::string hostSource(const std::string &source, const runtime::CudaLaunchTable &table) {
  std::vector<std::string> names(std::begin(test::kLibraryKernels),
                                 std::end(test::kLibraryKernels));
  for (const std::string &name : test::codecKernels(source))
    names.push_back(name);
  for (const runtime::CudaKernel &kernel : table.kernels)
    names.push_back(kernel.function);
  std::string text, wrappers;
  for (const std::string &name : names) {
    text += "#define " + name + " kernel_" + name + "\n";
    wrappers += "#undef " + name + "\nextern \"C\" void " + name +
                "(const BraidNullLaunch *launch) {\n  braid::on_host::launchOrAbort(kernel_" +
                name + ", launch->grid, launch->block, launch->parameters);\n}\n";
  }
  return text + source + "#include \"test/lib/NullDevice/NullLaunch.h\"\n" + wrappers +
         "extern \"C\" {\nextern const char braid_launch_table[];\nconst char "
         "braid_launch_table[] = R\"__(" +
         table.toJson() + ")__\";\n}\n";
}

static int fail(const std::string &message) {
  llvm::errs() << "braid-test-cuda-on-host: error: " << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Compiles a bundle's CUDA kernels for the host\n");
  runtime::Result<runtime::Bundle> bundle = runtime::Bundle::read(input);
  if (!bundle.ok())
    return fail(bundle.status().message());
  runtime::BundleContents contents = bundle->copyContents();
  int made = 0;
  for (const runtime::KernelLibrary &library : contents.manifest.kernels) {
    if (library.target != "cuda")
      continue;
    auto table = runtime::CudaLaunchTable::fromJson(textOf(*bundle->find(library.launchesMember)));
    if (!table.ok())
      return fail(table.status().message());
    llvm::SmallString<128> file;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("braid-kernels", "so", file))
      return fail("cannot create a temporary file: " + error.message());
    std::string said = test::compileForHost(
        hostSource(textOf(*bundle->find(library.sourceMember)), *table), file.str().str());
    runtime::Result<runtime::Bytes> code = runtime::readFile(file.str().str());
    (void)llvm::sys::fs::remove(file);
    if (!said.empty())
      return fail(library.sourceMember + " does not compile: " + said);
    if (!code.ok())
      return fail(code.status().message());
    contents.members[library.member] = std::move(*code);
    ++made;
  }
  if (made == 0)
    return fail("'" + input + "' has no kernels for CUDA");
  runtime::Result<runtime::Bundle> forHost = runtime::Bundle::create(std::move(contents));
  if (!forHost.ok())
    return fail(forHost.status().message());
  if (runtime::Status status = forHost->write(output); !status.ok())
    return fail(status.message());
  return 0;
}
