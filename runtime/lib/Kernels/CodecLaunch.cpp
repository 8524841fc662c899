//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of generated kernels whose operands are payloads. A member of the team decodes some rows
// to memory of its own, runs the kernel on them, and encodes what the kernel gave, so that neither
// is in memory whole. A kernel computes a row alike in any range of rows, and so does the codec:
// the bits are those of separate launches.
//
//===----------------------------------------------------------------------===//
#include "PayloadRows.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

/// Bytes of row operands that one block of rows has: they stay in a core's own caches.
constexpr int64_t kBlockBytes = 1 << 16;
/// Elements of all rows for which a further member is worth it.
constexpr int64_t kGrain = 16384;
constexpr size_t kLine = 64;

size_t roundedUp(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

class CodecLaunch : public LibraryRun {
public:
  CodecLaunch(KernelFunction function, int64_t rows) : function(function), rows(rows) {}

  Status resolve(const std::vector<Tensor> &tensors, const std::vector<bool> &rowOperand,
                 const std::vector<EncodedOperand> &encoded, int64_t threads) {
    int64_t bytesOfRow = 0, work = 0;
    std::vector<const EncodedOperand *> codecs(tensors.size(), nullptr);
    for (const EncodedOperand &one : encoded)
      codecs[one.operand] = &one;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor t = tensors[i];
      Operand operand;
      if (codecs[i]) {
        const LibraryArguments &codec = codecs[i]->codec;
        ASSIGN_OR_RETURN(PayloadRows payload, PayloadRows::of(codec));
        const size_t place = codecRows(codec);
        t = {nullptr, codec[place].dtype, codec[place].shape, codec[place].strides};
        operand.rowBytes = payload.rows() / rows * payload.rowBytes();
        const bool isEncode = place < codecPayload(codec);
        (isEncode ? encodes : decodes).push_back({i, payload, payload.rows() / rows, 0});
      } else if (rowOperand[i]) {
        if (t.shape.empty() || t.shape[0] != rows)
          return Status::error("expects operand ", i, " to have ", rows, " rows, got ",
                               shapeString(t.shape));
        operand.data = t.data;
        operand.rowBytes = t.strides[0] * byteSize(t.dtype);
      }
      work = std::max(work, t.numElements());
      if (codecs[i] || rowOperand[i])
        bytesOfRow += t.numElements() / rows * byteSize(t.dtype);
      operand.isRow = codecs[i] || rowOperand[i];
      operand.word = words.size();
      words.insert(words.end(),
                   {reinterpret_cast<intptr_t>(t.data), reinterpret_cast<intptr_t>(t.data), 0});
      words.insert(words.end(), t.shape.begin(), t.shape.end());
      words.insert(words.end(), t.strides.begin(), t.strides.end());
      operands.push_back(operand);
    }
    members = std::min(shareOut(work, kGrain, threads), rows);
    blockRows = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(bytesOfRow, 1), 1, rows);
    // The memory of a member: descriptors, pointers to them, and the rows of each codec.
    pointersAt = roundedUp(words.size() * sizeof(int64_t));
    size_t end = pointersAt + roundedUp(operands.size() * sizeof(void *));
    for (std::vector<CodedOperand> *all : {&decodes, &encodes})
      for (CodedOperand &coded : *all) {
        coded.at = end;
        end += roundedUp(static_cast<size_t>(blockRows * operands[coded.operand].rowBytes));
      }
    scratchBytes = end + kLine;
    return {};
  }

  void run(const NamedCommand &source, ExecutionContext &context) const override {
    Status status;
    for (size_t i = 0; i < decodes.size() && status.ok(); ++i)
      status = decodes[i].payload.checkHeaders().within(nameOf(decodes[i]));
    std::vector<Status> failures(static_cast<size_t>(members));
    if (status.ok()) {
      for (const CodedOperand &coded : encodes) {
        coded.payload.writeBorders();
        for (int64_t row = coded.payload.rows(); row < coded.payload.allRows(); ++row)
          coded.payload.encode(*context.kernels.codec, row, nullptr);
      }
      context.share(members, [&](int64_t member) {
        failures[static_cast<size_t>(member)] =
            runRows(partOf(rows, member, members), *context.kernels.codec,
                    context.scratch[static_cast<size_t>(member)]);
      });
    }
    for (size_t i = 0; i < failures.size() && status.ok(); ++i)
      status = failures[i];
    if (!status.ok())
      context.control.fail(
          status.within("rank " + std::to_string(context.self.rank) + ": " + describe(source)));
  }

private:
  struct Operand {
    bool isRow = false;
    std::byte *data = nullptr; ///< of row 0; null of what is coded
    int64_t rowBytes = 0;      ///< from one row of the kernel to the next
    size_t word = 0;           ///< of the descriptor
  };
  struct CodedOperand {
    size_t operand;
    PayloadRows payload;
    int64_t perRow; ///< rows of the payload for one of the kernel
    size_t at;      ///< of a block of rows, in the memory of a member
  };

  static std::string nameOf(const CodedOperand &coded) {
    return "operand " + std::to_string(coded.operand);
  }

  Status runRows(Range range, const CodecKernels &kernels, std::vector<std::byte> &scratch) const {
    if (scratch.size() < scratchBytes)
      scratch.resize(scratchBytes);
    auto *memory =
        reinterpret_cast<std::byte *>(roundedUp(reinterpret_cast<size_t>(scratch.data())));
    auto *descriptors = reinterpret_cast<int64_t *>(memory);
    auto *pointers = reinterpret_cast<void **>(memory + pointersAt);
    std::memcpy(descriptors, words.data(), words.size() * sizeof(int64_t));
    for (size_t i = 0; i < operands.size(); ++i)
      pointers[i] = descriptors + operands[i].word;
    for (const std::vector<CodedOperand> *all : {&decodes, &encodes})
      for (const CodedOperand &coded : *all)
        setAddress(descriptors, operands[coded.operand], memory + coded.at);
    for (int64_t begin = range.begin; begin < range.end; begin += blockRows) {
      const int64_t count = std::min(blockRows, range.end - begin);
      for (const Operand &operand : operands) {
        if (operand.isRow)
          descriptors[operand.word + 3] = count;
        if (operand.data)
          setAddress(descriptors, operand, operand.data + begin * operand.rowBytes);
      }
      for (const CodedOperand &coded : decodes)
        RETURN_IF_ERROR(coded.payload
                            .decode(kernels, {begin * coded.perRow, (begin + count) * coded.perRow},
                                    memory + coded.at, coded.payload.rowBytes(), /*stream=*/false)
                            .within(nameOf(coded)));
      function(pointers);
      for (const CodedOperand &coded : encodes)
        for (int64_t row = 0; row < count * coded.perRow; ++row)
          coded.payload.encode(kernels, begin * coded.perRow + row,
                               memory + coded.at +
                                   static_cast<size_t>(row * coded.payload.rowBytes()));
    }
    return {};
  }

  static void setAddress(int64_t *descriptors, const Operand &operand, std::byte *address) {
    descriptors[operand.word] = descriptors[operand.word + 1] = reinterpret_cast<intptr_t>(address);
  }

  KernelFunction function;
  int64_t rows, blockRows = 1, members = 1;
  std::vector<Operand> operands;
  std::vector<CodedOperand> decodes, encodes;
  std::vector<int64_t> words; ///< the memref descriptors of the first row's operands
  size_t pointersAt = 0, scratchBytes = 0;
};

} // namespace

Result<LibraryCommand> resolveCodecLaunch(KernelFunction function,
                                          const std::vector<Tensor> &operands,
                                          const std::vector<bool> &rowOperand,
                                          const std::vector<EncodedOperand> &encoded, int64_t rows,
                                          int64_t threads) {
  auto launch = std::make_shared<CodecLaunch>(function, rows);
  RETURN_IF_ERROR(launch->resolve(operands, rowOperand, encoded, threads));
  return LibraryCommand(std::move(launch));
}

} // namespace braid::runtime
