//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "KernelCheck.h"

#include "braid/InitAll.h"
#include "braid/Interpreter/Evaluate.h"
#include "braid/Target/CUDA/CUDACompiler.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

using namespace mlir;
using namespace braid;
using namespace braid::test;
using interp::DType;
using interp::Shape;
using interp::Tensor;

//===----------------------------------------------------------------------===//
// Buffer
//===----------------------------------------------------------------------===//

static constexpr std::byte kGuard{0xff};
static constexpr size_t kGuardBytes = 64;

Buffer::Buffer(DType type, Shape shape, int64_t padding) : type(type), shape(std::move(shape)) {
  place(padding);
}

Buffer::Buffer(const Tensor &elements, int64_t padding)
    : type(elements.dtype()), shape(elements.shape()) {
  place(padding);
  runtime::HostTensor host = elements.toHost();
  size_t size = runtime::byteSize(type);
  for (int64_t i = 0, end = elements.numElements(); i < end; ++i)
    std::memcpy(&bytes[positionOf(interp::unflatten(i, shape))], &host.data[i * size], size);
}

void Buffer::place(int64_t padding) {
  elementStrides.assign(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    elementStrides[dim - 1] =
        elementStrides[dim] * shape[dim] + (dim == shape.size() - 1 ? padding : 0);
  size_t size = runtime::byteSize(type),
         count = shape.empty() ? 1 : shape[0] * std::max<long long>(elementStrides[0], 1);
  bytes.assign(count * size + 3 * kGuardBytes, kGuard);
  // A vector's memory has no particular alignment.
  auto address = reinterpret_cast<uintptr_t>(bytes.data()) + kGuardBytes;
  offset = kGuardBytes + (kGuardBytes - address % kGuardBytes) % kGuardBytes;
}

size_t Buffer::positionOf(const Shape &index) const {
  int64_t at = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    at += index[dim] * elementStrides[dim];
  return offset + at * runtime::byteSize(type);
}

Tensor Buffer::read() const {
  runtime::HostTensor host = runtime::HostTensor::zeros(type, shape);
  size_t size = runtime::byteSize(type);
  for (int64_t i = 0, end = host.numElements(); i < end; ++i)
    std::memcpy(&host.data[i * size], &bytes[positionOf(interp::unflatten(i, shape))], size);
  return Tensor::fromHost(host);
}

bool Buffer::guardsHold() const {
  std::vector<std::byte> rest = bytes;
  size_t size = runtime::byteSize(type);
  for (int64_t i = 0, end = interp::numElements(shape); i < end; ++i)
    std::memset(&rest[positionOf(interp::unflatten(i, shape))], 0xff, size);
  return llvm::all_of(rest, [](std::byte one) { return one == kGuard; });
}

//===----------------------------------------------------------------------===//
// KernelModule
//===----------------------------------------------------------------------===//

static DialectRegistry &dialects() {
  static DialectRegistry registry = [] {
    DialectRegistry all;
    registerAllDialects(all);
    return all;
  }();
  return registry;
}

KernelModule::KernelModule(const std::string &source)
    : context(dialects(), MLIRContext::Threading::DISABLED),
      module(parseSourceString<ModuleOp>(source, &context)) {
  context.loadDialect<func::FuncDialect>(); // For the interpreter, which runs functions.
  if (module)
    compile();
  else
    ADD_FAILURE() << "not a module:\n" << source;
}

KernelModule::KernelModule(ModuleOp given)
    : KernelModule([&] {
        std::string text;
        llvm::raw_string_ostream os(text);
        given.print(os, OpPrintingFlags().enableDebugInfo());
        return text;
      }()) {}

void KernelModule::compile() {
  FailureOr<CUDASource> source = emitCUDA(*module);
  if (failed(source)) {
    ADD_FAILURE() << "no CUDA source";
    return;
  }
  emitted = std::move(*source);
  // Removes the library's kernels, which every program contains: they have their own tests.
  constexpr StringRef library = "#include <braid/library.cuh>\n";
  EXPECT_TRUE(StringRef(emitted.text).starts_with(library));
  emitted.text.erase(0, library.size());
  kernels = HostKernels::compile(emitted.text, functions());
}

std::vector<std::string> KernelModule::functions() const {
  std::vector<std::string> all;
  for (const runtime::CudaKernel &kernel : emitted.kernels)
    all.push_back(kernel.function);
  return all;
}

std::vector<std::string> KernelModule::symbols() const {
  std::vector<std::string> all;
  for (const runtime::CudaKernel &kernel : emitted.kernels)
    all.push_back(kernel.symbol);
  return all;
}

static DType elementType(Type type) {
  interp::Result<DType> known = interp::dtypeOf(getElementTypeOrSelf(type));
  EXPECT_TRUE(known.ok());
  return *known;
}

static Shape shapeOf(Type type, int64_t rows) {
  Shape shape(cast<RankedTensorType>(type).getShape());
  for (int64_t &extent : shape)
    extent = ShapedType::isDynamic(extent) ? rows : extent;
  return shape;
}

/// The relative L2 distance. Two NaN have distance 0.
static double distance(const Tensor &got, const Tensor &expected) {
  int64_t count = got.numElements();
  std::vector<double> values(got.floats(), got.floats() + count),
      meant(expected.floats(), expected.floats() + count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(values[i]) && std::isnan(meant[i]))
      values[i] = meant[i] = 0;
  return interp::relativeL2(Tensor::ofFloats(got.dtype(), got.shape(), values),
                            Tensor::ofFloats(got.dtype(), got.shape(), meant));
}

/// An upper bound for the relative L2 distance. Sums in another order stay below it, and so does a
/// difference of one unit in the last place of the narrowest type that values are rounded to, since
/// a rounding may go the other way.
static double allowed(rt::KernelOp kernel) {
  double most = 2e-6;
  auto see = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    most = std::max(most, element.isBF16() ? 8e-3 : element.isF16() ? 1e-3 : 0.0);
  };
  llvm::for_each(kernel.getResultTypes(), see);
  kernel.walk([&](Operation *op) { llvm::for_each(op->getResultTypes(), see); });
  return most;
}

/// Interprets a kernel: its body becomes a function on tensors with this number of rows.
static std::vector<Tensor> interpret(rt::KernelOp kernel, const std::vector<Tensor> &inputs) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  SmallVector<Type> inputTypes, resultTypes;
  int64_t rows = 0;
  for (auto [type, input] : llvm::zip_equal(kernel.getArgumentTypes(), inputs)) {
    inputTypes.push_back(
        RankedTensorType::get(input.shape(), cast<RankedTensorType>(type).getElementType()));
    if (rt::KernelOp::isRowOperand(type))
      rows = input.shape()[0];
  }
  for (Type type : kernel.getResultTypes())
    resultTypes.push_back(RankedTensorType::get(shapeOf(type, rows), getElementTypeOrSelf(type)));
  auto func = func::FuncOp::create(builder, kernel.getLoc(), "main",
                                   builder.getFunctionType(inputTypes, resultTypes));
  IRMapping mapping;
  kernel.getBody().cloneInto(&func.getBody(), mapping);
  Block &body = func.getBody().front();
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), inputTypes))
    argument.setType(type);
  Operation *yield = body.getTerminator();
  builder.setInsertionPoint(yield);
  func::ReturnOp::create(builder, yield->getLoc(), yield->getOperands());
  yield->erase();

  interp::EvaluateOptions options;
  options.roundToStorage = true;
  for (auto [number, input] : llvm::enumerate(inputs))
    options.inputs.push_back({"arg" + std::to_string(number), input});
  interp::Result<interp::Evaluation> run = interp::evaluate(*module, options);
  std::vector<Tensor> results;
  if (!run.ok()) {
    ADD_FAILURE() << run.status().message();
    return results;
  }
  for (interp::NamedTensor &result : run->results)
    results.push_back(std::move(result.value));
  return results;
}

void KernelModule::check(const std::string &symbol, const CheckOptions &options) {
  auto kernel = module->lookupSymbol<rt::KernelOp>(symbol);
  ASSERT_TRUE(kernel);
  std::mt19937_64 random(options.seed);
  std::vector<Tensor> inputs;
  for (Type type : kernel.getArgumentTypes()) {
    Shape shape = shapeOf(type, options.rows);
    DType element = elementType(type);
    int64_t count = interp::numElements(shape);
    if (interp::isFloat(element)) {
      std::vector<double> values(count);
      for (double &value : values)
        value = interp::roundTo(element, std::uniform_real_distribution<double>(-2, 2)(random));
      inputs.push_back(Tensor::ofFloats(element, shape, std::move(values)));
    } else {
      std::vector<int64_t> values(count);
      for (int64_t &value : values)
        value = static_cast<int64_t>(random() % 5) - 2;
      inputs.push_back(Tensor::ofInts(element, shape, std::move(values)));
    }
  }
  check(symbol, inputs, options);
}

void KernelModule::check(const std::string &symbol, const std::vector<Tensor> &inputs,
                         const CheckOptions &options) {
  auto kernel = module->lookupSymbol<rt::KernelOp>(symbol);
  auto found = llvm::find_if(emitted.kernels,
                             [&](const runtime::CudaKernel &one) { return one.symbol == symbol; });
  ASSERT_TRUE(kernel && found != emitted.kernels.end()) << symbol;
  SCOPED_TRACE(symbol + ": " + std::to_string(options.rows) + " rows, padding " +
               std::to_string(options.padding) + ", seed " + std::to_string(options.seed));

  StringRef text = emitted.text;
  SCOPED_TRACE(text.substr(text.find("\n" + found->function + "(")).split("\n}\n").first.str());

  std::vector<Buffer> buffers;
  unsigned numArguments = kernel.getArgumentTypes().size(),
           numResults = kernel.getResultTypes().size();
  std::vector<unsigned> places; // The buffer of each operand.
  for (const Tensor &input : inputs) {
    places.push_back(buffers.size());
    buffers.emplace_back(input, options.padding);
  }
  for (unsigned result = 0; result < numResults; ++result) {
    std::optional<unsigned> shared;
    for (unsigned argument = 0; options.inPlace && !shared && argument < numArguments; ++argument)
      if (kernel.canShare(argument, result) &&
          !llvm::is_contained(ArrayRef(places).drop_front(numArguments), argument))
        shared = argument;
    places.push_back(shared ? *shared : buffers.size());
    if (shared)
      continue;
    Type type = kernel.getResultTypes()[result];
    buffers.emplace_back(elementType(type), shapeOf(type, options.rows), options.padding);
  }

  // The address of each value, as cuLaunchKernel takes them.
  std::vector<void *> addresses;
  std::vector<long long> strides;
  for (auto [operand, place] : llvm::zip_equal(found->operands, places)) {
    addresses.push_back(buffers[place].address());
    ArrayRef<long long> all = buffers[place].strides();
    strides.insert(strides.end(), all.begin(), all.begin() + operand.numStrides());
  }
  auto rows = static_cast<unsigned>(options.rows);
  std::vector<void *> arguments;
  size_t stride = 0;
  for (auto [number, operand] : llvm::enumerate(found->operands)) {
    arguments.push_back(static_cast<void *>(&addresses[number]));
    for (unsigned i = 0; i < operand.numStrides(); ++i)
      arguments.push_back(&strides[stride++]);
  }
  arguments.push_back(&rows);

  std::string error = kernels->launch(found->function, found->blocks(options.rows), found->threads,
                                      arguments, options.seed);
  ASSERT_EQ(error, "");
  std::vector<Tensor> expected = interpret(kernel, inputs);
  ASSERT_EQ(expected.size(), numResults);
  for (const Buffer &buffer : buffers)
    EXPECT_TRUE(buffer.guardsHold()) << "memory outside of an operand was written";
  for (unsigned result = 0; result < numResults; ++result) {
    Tensor got = buffers[places[numArguments + result]].read();
    if (!got.isFloat()) {
      EXPECT_EQ(interp::firstDifference(got, expected[result]), -1) << "result " << result;
      continue;
    }
    double error = distance(got, expected[result]);
    EXPECT_LE(error, allowed(kernel)) << "result " << result;
    double &most = worst[got.typeString().substr(0, got.typeString().find('['))];
    most = std::max(most, error);
  }
  // Kernels must not write arguments.
  for (unsigned argument = 0; argument < numArguments; ++argument)
    if (!llvm::is_contained(ArrayRef(places).drop_front(numArguments), argument))
      EXPECT_EQ(interp::firstDifference(buffers[argument].read(), inputs[argument]), -1)
          << "argument " << argument << " was written";
}

void KernelModule::compileForGPUs(ArrayRef<StringRef> architectures, bool tightly) {
  test::compileForGPUs(emitted.text, functions(), architectures, tightly);
}

void braid::test::compileForGPUs(const std::string &source, const std::vector<std::string> &kernels,
                                 ArrayRef<StringRef> architectures, bool tightly,
                                 int64_t mostRegisters) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str();
    return success();
  });
  CUDACompileOptions options;
  options.cacheDirectory = "";
  options.compiler = CUDACompilerKind::NVRTC;
  for (StringRef architecture : architectures) {
    SCOPED_TRACE(architecture.str());
    FailureOr<CUDABinary> binary =
        compileCUDA(source, architecture, UnknownLoc::get(&context), options);
    if (failed(binary) && StringRef(messages).starts_with("found no compiler")) {
      std::cout << "not compiled for GPUs: this machine has no NVRTC\n";
      return;
    }
    ASSERT_TRUE(succeeded(binary)) << messages << "\n" << source;
    for (const std::string &kernel : kernels) {
      auto usage = llvm::find_if(binary->usage,
                                 [&](const CUDAUsage &one) { return one.function == kernel; });
      ASSERT_TRUE(usage != binary->usage.end()) << kernel;
      if (!tightly)
        continue;
      EXPECT_EQ(usage->spillStoreBytes + usage->spillLoadBytes + usage->stackBytes, 0)
          << kernel << ": stores " << usage->spillStoreBytes << ", loads " << usage->spillLoadBytes
          << ", stack " << usage->stackBytes << ", of " << usage->registers << " registers";
      EXPECT_LE(usage->registers, mostRegisters) << kernel;
    }
  }
}
