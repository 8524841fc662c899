//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes what fuzzing begins with: a folder for each target, made from what the tests use. Kept as
// code, so that it follows the formats.
//
//===----------------------------------------------------------------------===//
#include "../unit/InterpreterCore/OverlapProgram.h"
#include "../unit/Runtime/CollectiveTable.h"
#include "../unit/Runtime/SampleProgram.h"
#include "ProgramInput.h"
#include "braid/Runtime/ManifestJson.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i64 = DType::i64;

class Folders {
public:
  explicit Folders(std::filesystem::path root) : root(std::move(root)) {}
  void write(const std::string &target, const std::string &name, const std::string &text) {
    std::filesystem::create_directories(root / target);
    std::ofstream file(root / target / name, std::ios::binary);
    file << text;
    complete &= file.good();
  }
  bool complete = true;

private:
  std::filesystem::path root;
};

std::string text(const Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// Every use of a collective, one after the other, on two ranks.
ProgramBuilder collectives(const Row &row) {
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", f32, {8});
  b.result("y", f32, {8});
  b.procedure("main", 2, 0, 0, 0);
  Layout layout;
  uint32_t events = 0;
  ProcedureBuilder p(b.program, *b.program.procedures[0]);
  p.copy("x", argument(0, f32, {8}), layout.place(f32, {8}));
  for (const Use &use : row.uses(2)) {
    std::vector<V> inputs, outputs;
    for (size_t i = 0; i < use.inputs.size(); ++i)
      inputs.push_back(layout.place(use.inputType(i, f32), use.inputs[i]));
    const std::vector<Shape> shapes = outputShapes(use, f32, 2);
    for (size_t i = 0; i < shapes.size(); ++i)
      outputs.push_back(
          layout.place(use.capacity > 0 && i + 1 == shapes.size() ? i64 : f32, shapes[i]));
    Events used(use, events);
    start(p, "c", use, {{"tp"}}, inputs, outputs, used);
    wait(p, "c", use, used);
  }
  p.copy("y", symmetric(0, f32, {8}), argument(1, f32, {8}));
  b.program.procedures[0]->symmetric_bytes = layout.bytes();
  b.program.procedures[0]->num_events = events;
  return b;
}

/// Every command that is a call of the library, on a mesh of two axes.
ProgramBuilder libraryCalls() {
  constexpr int64_t kBatch = 2, kSeq = 3, kHeads = 4, kDim = 8, kRows = 16;
  ProgramBuilder b({{"dp", 2}, {"tp", 2}});
  b.parameter("table", {2 * kRows, kHeads * kDim}, {{"tp"}, {}});
  b.parameter("w", {kHeads * kDim, kHeads * kDim});
  b.parameter("bias", {kHeads * kDim});
  b.operand("ids", i64, {kBatch, kSeq});
  b.operand("mask", i64, {kBatch, kSeq});
  b.operand("lengths", i64, {kBatch});
  b.result("y", f32, {kBatch, kSeq, kHeads, kDim});
  b.result("positions", i64, {kBatch, kSeq});
  auto p = b.procedure("main", 8, 8192, 0, 0);
  uint64_t end = 0;
  auto place = [&](DType dtype, const Shape &shape) {
    V view = local(end, dtype, shape);
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    end += static_cast<uint64_t>(elements * byteSize(dtype) + 63) / 64 * 64;
    return view;
  };
  V hidden = place(f32, {kBatch, kSeq, kHeads * kDim});
  V heads = hidden, query = place(f32, {kBatch, kSeq, kHeads, kDim});
  heads.shape = query.shape;
  heads.strides = query.strides;
  V cos = place(f32, {kBatch, kSeq, kDim / 2}), sin = place(f32, {kBatch, kSeq, kDim / 2});
  V linear = place(f32, {kBatch, kSeq, kHeads * kDim}), part = place(f32, {kBatch, kSeq, 16});
  V ids = argument(3, i64, {kBatch, kSeq}), mask = argument(4, i64, {kBatch, kSeq}),
    lengths = argument(5, i64, {kBatch}), y = argument(6, f32, query.shape);
  {
    EmbeddingLaunch op;
    op.table = argument(0, f32, {kRows, kHeads * kDim}).build();
    op.ids = ids.build();
    op.out = hidden.build();
    op.axes = ProcedureBuilder::axisRefs({"tp"});
    p.compute("gather", std::move(op));
  }
  {
    PositionIdsLaunch op;
    op.ids = ids.build();
    op.padding = 1;
    op.out = argument(7, i64, {kBatch, kSeq}).build();
    p.compute("positions", std::move(op));
  }
  {
    RotaryTableLaunch op;
    op.frequencies = {1, 0.1, 0.01, 0.001};
    op.position_offset = lengths.build();
    op.cos = cos.build();
    op.sin = sin.build();
    p.compute("table", std::move(op));
  }
  {
    RotaryLaunch op;
    op.input = heads.build();
    op.cos = cos.build();
    op.sin = sin.build();
    op.out = query.build();
    p.compute("rotary", std::move(op));
  }
  {
    AttentionLaunch op;
    op.query = query.build();
    op.key = heads.build();
    op.value = heads.build();
    op.mask = mask.build();
    op.valid_length = lengths.build();
    op.position_offset = lengths.build();
    op.out = y.build();
    op.scale = 0.35;
    op.causal = true;
    p.compute("attention", std::move(op));
  }
  V bias = argument(2, f32, {kHeads * kDim});
  p.linear("linear", hidden, argument(1, f32, {kHeads * kDim, kHeads * kDim}), &bias, linear);
  {
    LocalSliceLaunch op;
    op.source = linear.build();
    op.dest = part.build();
    op.dim = 2;
    op.axes = ProcedureBuilder::axisRefs({"tp"});
    p.compute("slice", std::move(op));
  }
  b.program.procedures[0]->local_bytes = end;
  return b;
}

void writeProgram(Folders &folders, const std::string &name, const Bundle &bundle) {
  braid::fuzz::ProgramInput input;
  input.manifest = toJson(bundle.manifest);
  input.program = bundle.members.at(bundle.manifest.programMember);
  for (uint8_t choices : {0, 4}) {
    input.choices = choices;
    folders.write("Program", name + (choices ? ".interpreted" : ".executed"), input.bytes());
  }
  folders.write("Manifest", name + ".json", input.manifest);
}

bool writePrograms(Folders &folders) {
  Bundle sample = sampleBundle();
  writeProgram(folders, "sample", sample);
  Result<Bytes> archive = sample.serialize();
  if (!archive.ok()) {
    std::cerr << archive.status().message() << '\n';
    return false;
  }
  folders.write("Bundle", "sample.braid", text(*archive));
  writeProgram(folders, "overlap", *braid::interp::testing::OverlapProgram().builder.bundle());
  for (const Row &row : kRows)
    writeProgram(folders, braid::runtime::name(row.kind), *collectives(row).bundle());
  writeProgram(folders, "library-calls", *libraryCalls().bundle());
  return true;
}

void writeTensors(Folders &folders) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
      R"("c":{"dtype":"I64","shape":[],"data_offsets":[32,40]},)"
      R"("d":{"dtype":"F6_E2M3","shape":[4,0,9],"data_offsets":[40,40]}})";
  std::string file("\1\2\3", 3);
  for (size_t i = 0; i < 8; ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  folders.write("Safetensors", "types", file + header + std::string(40, '\7'));
  folders.write(
      "ShardIndex", "two-files",
      R"({"metadata":{"total_size":16},"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");

  for (const char *order : {"False", "True"})
    for (const char *descr : {"<f4", "<f2", "<i8", "|b1"}) {
      std::string dictionary = std::string("{'descr': '") + descr + "', 'fortran_order': " + order +
                               ", 'shape': (2, 3, ), }\n";
      const size_t bytes = 6 * static_cast<size_t>(descr[2] == '1' ? 1 : descr[2] - '0');
      std::string npy("\x93NUMPY\1\0", 8);
      npy += static_cast<char>(dictionary.size());
      npy += '\0';
      folders.write("Npy", std::string(descr + 1) + "-" + order,
                    npy + dictionary + std::string(bytes, '\1'));
    }
}

std::string read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeConfigurations(Folders &folders, const std::filesystem::path &tests) {
  folders.write("ModelConfig", "bert", read(tests / "Integration/golden/tiny-bert/config.json"));
  folders.write("ModelConfig", "gpt2",
                R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"vocab_size":20,)"
                R"("n_positions":16,"n_embd":8,"n_layer":2,"n_head":2,"n_inner":null,)"
                R"("activation_function":"gelu_new","layer_norm_epsilon":1e-5,)"
                R"("tie_word_embeddings":true,"scale_attn_weights":true})");
  folders.write("ModelConfig", "llama",
                R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":20,)"
                R"("hidden_size":8,"intermediate_size":24,"num_hidden_layers":2,)"
                R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":2,)"
                R"("hidden_act":"silu","max_position_embeddings":16,"rms_norm_eps":1e-6,)"
                R"("rope_theta":10000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,)"
                R"("low_freq_factor":1.0,"high_freq_factor":4.0,)"
                R"("original_max_position_embeddings":8},"tie_word_embeddings":false})");
}

/// The passes of a RUN line of braid-opt, as a pipeline: `--a="x=1 y=2" --b` is a{x=1 y=2},b.
std::string pipelineOf(const std::string &line) {
  std::string pipeline;
  for (size_t at = line.find(" -"); at != std::string::npos; at = line.find(" -", at + 1)) {
    const size_t begin = line.find_first_not_of(" -", at), end = line.find_first_of("= ", begin);
    if (begin == std::string::npos)
      break;
    const std::string name = line.substr(begin, end - begin);
    if (name.compare(0, 6, "braid-") != 0 && name != "canonicalize" && name != "cse")
      continue;
    std::string options;
    if (end != std::string::npos && line[end] == '=') {
      const bool quoted = line[end + 1] == '"';
      const size_t first = end + (quoted ? 2 : 1);
      options = "{" + line.substr(first, line.find(quoted ? '"' : ' ', first) - first) + "}";
    }
    std::string pass = name + options;
    if (name == "braid-decompose-nn" || name == "braid-cpu-approximate-math")
      pass = "any(" + pass + ")";
    pipeline += (pipeline.empty() ? "" : ",") + pass;
  }
  return pipeline;
}

/// The modules of every test of the IR, each with the passes that the test runs.
void writeModules(Folders &folders, const std::filesystem::path &tests) {
  constexpr size_t kMaxBytes = 12000;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(tests)) {
    if (entry.path().extension() != ".mlir")
      continue;
    std::istringstream lines(read(entry.path()));
    std::string pipeline, module, base = entry.path().stem();
    int number = 0;
    auto finish = [&] {
      if (module.size() < kMaxBytes && module.find_first_not_of(" \n") != std::string::npos)
        folders.write("IR", base + "." + std::to_string(number++),
                      "// pipeline: " + (pipeline.empty() ? "canonicalize" : pipeline) + "\n" +
                          module);
      module.clear();
    };
    for (std::string line; std::getline(lines, line);) {
      if (line.find("RUN:") != std::string::npos && pipeline.empty())
        pipeline = pipelineOf(line);
      if (line.compare(0, 5, "// --") == 0 || line.compare(0, 5, "//---") == 0)
        finish();
      else if (const size_t text = line.find_first_not_of(' ');
               text != std::string::npos && line.compare(text, 2, "//") != 0)
        module += line + "\n";
    }
    finish();
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "expects a folder to write to, and that of the tests\n";
    return 1;
  }
  Folders folders(argv[1]);
  writeTensors(folders);
  writeConfigurations(folders, argv[2]);
  writeModules(folders, argv[2]);
  return writePrograms(folders) && folders.complete ? 0 : 1;
}
