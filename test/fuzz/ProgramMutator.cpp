//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramMutator.h"

#include "braid/Program/Manifest.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/ManifestJson.h"

#include <algorithm>
#include <cmath>

namespace braid::fuzz {

namespace fb = braid::program;
using runtime::Bytes;
using Views = std::vector<std::unique_ptr<fb::ViewT>>;
using Axes = std::vector<std::unique_ptr<fb::AxisRefT>>;
using Commands = std::vector<std::unique_ptr<fb::CommandT>>;

namespace {

/// Whether the numbers of 8 bytes are aligned to 8. FlatBuffers' verifier does not check this, but
/// unpacking needs it.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *numbers) {
  return !numbers || reinterpret_cast<uintptr_t>(numbers->Data()) % sizeof(T) == 0;
}
bool isAligned(const fb::View *view) {
  return !view || (isAligned(view->shape()) && isAligned(view->strides()));
}
bool isAligned(const flatbuffers::Vector<flatbuffers::Offset<fb::View>> *views) {
  for (const fb::View *view : *views)
    if (!isAligned(view))
      return false;
  return true;
}
template <typename... Parts> bool areAligned(Parts... parts) { return (isAligned(parts) && ...); }

bool isAligned(const fb::Command &command) {
  if (const auto *launch = command.op_as_Launch())
    return isAligned(launch->operands());
  if (const auto *copy = command.op_as_Copy())
    return areAligned(copy->source(), copy->dest());
  if (const auto *collective = command.op_as_CollectiveStart())
    return areAligned(collective->inputs(), collective->outputs());
  if (const auto *call = command.op_as_Call())
    return isAligned(call->arguments());
  // Commands without views. A command of an unknown kind has nothing to unpack.
  return command.op_as_CollectiveWait() || command.op_as_Record() || command.op_as_Await();
}

std::unique_ptr<fb::ProgramT> unpack(const Bytes &bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  if (!fb::VerifyProgramBuffer(verifier))
    return nullptr;
  const fb::Program *program = fb::GetProgram(bytes.data());
  if (!isAligned(program->mesh()->order()))
    return nullptr;
  for (const fb::Kernel *kernel : *program->kernels())
    if (const auto *library = kernel->library();
        library && !areAligned(library->integers(), library->numbers()))
      return nullptr;
  for (const fb::Procedure *procedure : *program->procedures())
    for (const fb::Stream *stream : *procedure->streams())
      for (const fb::Command *command : *stream->commands())
        if (!isAligned(*command))
          return nullptr;
  return fb::UnPackProgram(bytes.data());
}

Bytes pack(const fb::ProgramT &program) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &program));
  const auto *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  return Bytes(begin, begin + builder.GetSize());
}

/// Everything in a program that can be mutated, by kind.
class Places {
public:
  explicit Places(fb::ProgramT &program) {
    for (auto &axis : program.mesh->axes)
      add(axis->size);
    add(program.mesh->order);
    for (auto &kernel : program.kernels) {
      add(kernel->num_operands);
      add(kernel->num_outputs);
      add(kernel->in_place);
      for (auto &codec : kernel->codecs) {
        add(codec->operand);
        add(codec->codec->integers);
        add(codec->row_shape);
      }
      if (!kernel->library)
        continue;
      add(kernel->library->optional);
      add(kernel->library->integers);
      for (double &number : kernel->library->numbers)
        doubles.push_back(&number);
      add(kernel->library->axes);
    }
    for (auto &entry : program.entries)
      add(entry->procedure);
    for (auto &queue : program.queues)
      addEnum(queue->kind);
    for (auto &procedure : program.procedures) {
      add(procedure->num_arguments);
      add(procedure->num_events);
      add(procedure->num_event_arguments);
      add(procedure->symmetric_arguments);
      add(procedure->local_bytes);
      add(procedure->symmetric_bytes);
      for (auto &buffer : procedure->buffers) {
        addEnum(buffer->space);
        add(buffer->offset_bytes);
        add(buffer->size_bytes);
      }
      for (auto &stream : procedure->streams) {
        queues.push_back(&stream->commands);
        for (auto &command : stream->commands)
          add(*command);
      }
    }
  }

  std::vector<uint32_t *> indices;
  std::vector<uint64_t *> sizes;
  std::vector<int64_t *> extents;
  std::vector<int32_t *> buffers;
  std::vector<unsigned char *> enums;
  std::vector<double *> doubles;
  std::vector<std::vector<uint32_t> *> indexLists;
  std::vector<std::vector<int64_t> *> extentLists;
  std::vector<std::unique_ptr<fb::ViewT> *> views;
  std::vector<Views *> viewLists;
  std::vector<Axes *> axisLists;
  std::vector<Commands *> queues;

private:
  void add(uint32_t &value) { indices.push_back(&value); }
  void add(uint64_t &value) { sizes.push_back(&value); }
  void add(int64_t &value) { extents.push_back(&value); }
  template <typename Enum> void addEnum(Enum &value) {
    enums.push_back(reinterpret_cast<unsigned char *>(&value));
  }
  void add(std::vector<uint32_t> &list) {
    indexLists.push_back(&list);
    for (uint32_t &value : list)
      add(value);
  }
  void add(std::vector<int64_t> &list) {
    extentLists.push_back(&list);
    for (int64_t &value : list)
      add(value);
  }
  void add(std::unique_ptr<fb::ViewT> &view) {
    views.push_back(&view);
    if (!view)
      return;
    addEnum(view->space);
    add(view->index);
    add(view->offset_bytes);
    addEnum(view->dtype);
    add(view->shape);
    add(view->strides);
    buffers.push_back(&view->buffer);
  }
  void add(Views &list) {
    viewLists.push_back(&list);
    for (auto &view : list)
      add(view);
  }
  void add(Axes &list) {
    axisLists.push_back(&list);
    for (auto &axis : list) {
      add(axis->pre);
      add(axis->size);
    }
  }
  template <typename... Parts> void addAll(Parts &...parts) { (add(parts), ...); }

  void add(fb::CommandT &command) {
    for (auto &named : command.on)
      add(named->coordinates);
    if (auto *launch = command.op.AsLaunch()) {
      addAll(launch->kernel, launch->operands, launch->rows);
    } else if (auto *copy = command.op.AsCopy()) {
      addAll(copy->source, copy->dest);
    } else if (auto *c = command.op.AsCollectiveStart()) {
      addEnum(c->kind);
      addEnum(c->reduce);
      addAll(c->axes, c->inputs, c->outputs, c->dim, c->done, c->concat_dim, c->root, c->pairs,
             c->tag);
    } else if (auto *wait = command.op.AsCollectiveWait()) {
      add(wait->event);
    } else if (auto *record = command.op.AsRecord()) {
      add(record->event);
    } else if (auto *await = command.op.AsAwait()) {
      add(await->event);
    } else if (auto *call = command.op.AsCall()) {
      addAll(call->procedure, call->arguments, call->local_base_bytes, call->symmetric_base_bytes,
             call->event_base, call->event_arguments);
    }
  }
};

/// As braid::runtime::rowMajorStrides, but mutated shapes may have products that wrap.
std::vector<int64_t> rowMajor(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  uint64_t next = 1;
  for (size_t d = shape.size(); d-- > 0; next *= static_cast<uint64_t>(shape[d]))
    strides[d] = static_cast<int64_t>(next);
  return strides;
}

/// Mutates a view in ways that often keep it inside its memory.
void reshape(fb::ViewT &view, Random &random) {
  auto &shape = view.shape;
  auto &strides = view.strides;
  if (shape.size() != strides.size())
    return;
  const auto at = [](size_t d) { return static_cast<std::ptrdiff_t>(d); };
  switch (random.below(6)) {
  case 0: // transpose
    if (shape.size() > 1) {
      size_t d = random.below(shape.size() - 1);
      std::swap(shape[d], shape[d + 1]);
      if (random.oneIn(2))
        std::swap(strides[d], strides[d + 1]);
    }
    return;
  case 1: { // add a dimension of one element
    size_t d = random.below(shape.size() + 1);
    shape.insert(shape.begin() + at(d), 1);
    strides.insert(strides.begin() + at(d), random.oneIn(2) ? 1 : otherInteger(1, random));
    return;
  }
  case 2: // remove a dimension
    if (!shape.empty()) {
      size_t d = random.below(shape.size());
      shape.erase(shape.begin() + at(d));
      strides.erase(strides.begin() + at(d));
    }
    return;
  case 3: // merge two dimensions
    if (shape.size() > 1) {
      size_t d = random.below(shape.size() - 1);
      shape[d] = static_cast<int64_t>(static_cast<uint64_t>(shape[d]) *
                                      static_cast<uint64_t>(shape[d + 1]));
      strides[d] = strides[d + 1];
      shape.erase(shape.begin() + at(d) + 1);
      strides.erase(strides.begin() + at(d) + 1);
    }
    return;
  case 4: // repeat the same element: stride 0
    if (!shape.empty())
      random.of(strides) = 0;
    return;
  default: // shrink a dimension
    if (!shape.empty()) {
      int64_t &extent = random.of(shape);
      extent = extent > 0 ? static_cast<int64_t>(random.below(static_cast<size_t>(extent) + 1)) : 0;
    }
  }
}

/// Adds a queue, with the calls that all queues have, or removes one.
void changeQueues(fb::ProgramT &program, Random &random) {
  if (program.queues.size() > 2 && random.oneIn(2)) {
    const size_t removed = random.below(program.queues.size());
    program.queues.erase(program.queues.begin() + static_cast<std::ptrdiff_t>(removed));
    for (auto &procedure : program.procedures)
      if (removed < procedure->streams.size())
        procedure->streams.erase(procedure->streams.begin() + static_cast<std::ptrdiff_t>(removed));
    return;
  }
  auto queue = std::make_unique<fb::QueueT>();
  queue->kind = random.oneIn(4) ? fb::QueueKind::copy : fb::QueueKind::communication;
  queue->name = "queue " + std::to_string(program.queues.size());
  program.queues.push_back(std::move(queue));
  for (auto &procedure : program.procedures) {
    auto stream = std::make_unique<fb::StreamT>();
    if (!procedure->streams.empty())
      for (const auto &command : procedure->streams.front()->commands)
        if (command->op.type == fb::Operation::Call)
          stream->commands.push_back(std::make_unique<fb::CommandT>(*command));
    procedure->streams.push_back(std::move(stream));
  }
}

void changeQueue(Places &places, Random &random) {
  Commands &queue = *random.of(places.queues), &other = *random.of(places.queues);
  const auto iteratorAt = [](Commands &commands, size_t i) {
    return commands.begin() + static_cast<std::ptrdiff_t>(i);
  };
  switch (random.below(6)) {
  case 3: // to another queue
    if (!queue.empty() && &queue != &other) {
      const auto from = iteratorAt(queue, random.below(queue.size()));
      std::unique_ptr<fb::CommandT> moved = std::move(*from);
      queue.erase(from);
      other.insert(iteratorAt(other, random.below(other.size() + 1)), std::move(moved));
    }
    return;
  case 0:
    if (!queue.empty())
      queue.erase(iteratorAt(queue, random.below(queue.size())));
    return;
  case 1:
    if (queue.size() > 1)
      std::swap(random.of(queue), random.of(queue));
    return;
  case 2:
    if (!other.empty()) {
      auto copy = std::make_unique<fb::CommandT>(*random.of(other));
      queue.insert(iteratorAt(queue, random.below(queue.size() + 1)), std::move(copy));
    }
    return;
  default: { // add a copy between memory of other commands
    if (places.views.size() < 2)
      return;
    const auto &from = *random.of(places.views), &to = *random.of(places.views);
    if (!from || !to)
      return;
    fb::CopyT op;
    op.source = std::make_unique<fb::ViewT>(*from);
    op.dest = std::make_unique<fb::ViewT>(*to);
    if (random.oneIn(2)) {
      op.dest->shape = op.source->shape;
      op.dest->dtype = op.source->dtype;
      op.dest->strides = rowMajor(op.dest->shape);
    }
    auto command = std::make_unique<fb::CommandT>();
    command->op.Set(std::move(op));
    queue.insert(iteratorAt(queue, random.below(queue.size() + 1)), std::move(command));
  }
  }
}

template <typename T> void changeInteger(std::vector<T *> &places, Random &random) {
  if (places.empty())
    return;
  T &place = *random.of(places);
  place = random.oneIn(3) ? *random.of(places)
                          : static_cast<T>(otherInteger(static_cast<int64_t>(place), random));
}
template <typename T> void changeList(std::vector<T> &list, Random &random) {
  if (random.oneIn(2) && !list.empty())
    list.pop_back();
  else
    list.push_back(list.empty() ? T(random.below(4)) : random.of(list));
}

template <typename T> void changeTables(std::vector<std::unique_ptr<T>> &list, Random &random) {
  if (list.empty())
    return;
  if (random.oneIn(2))
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(random.below(list.size())));
  else
    list.push_back(std::make_unique<T>(*random.of(list)));
}

void change(fb::ProgramT &program, Random &random) {
  Places places(program);
  switch (random.below(17)) {
  case 0:
    return changeInteger(places.indices, random);
  case 1:
    return changeInteger(places.sizes, random);
  case 2:
  case 3:
    return changeInteger(places.extents, random);
  case 4:
    return changeInteger(places.buffers, random);
  case 5:
    if (!places.enums.empty()) // the values of the largest enum, and an invalid one
      *random.of(places.enums) = static_cast<unsigned char>(random.below(11));
    return;
  case 6:
    if (!places.indexLists.empty())
      changeList(*random.of(places.indexLists), random);
    return;
  case 7:
    if (!places.extentLists.empty())
      changeList(*random.of(places.extentLists), random);
    return;
  case 8:
    if (!places.viewLists.empty())
      changeTables(*random.of(places.viewLists), random);
    return;
  case 9:
    if (!places.axisLists.empty())
      changeTables(*random.of(places.axisLists), random);
    return;
  case 10:
  case 11:
    if (!places.queues.empty())
      changeQueue(places, random);
    return;
  case 12: { // other memory
    if (places.views.empty())
      return;
    auto &view = *random.of(places.views);
    const auto &other = *random.of(places.views);
    if (other && &other != &view)
      view = std::make_unique<fb::ViewT>(*other);
    return;
  }
  case 14:
    return changeQueues(program, random);
  case 13: {
    static const double values[] = {0, -1, 1e38, -1e-38, INFINITY, NAN};
    if (!places.doubles.empty())
      *random.of(places.doubles) = random.of(values);
    return;
  }
  default:
    if (!places.views.empty())
      if (auto &view = *random.of(places.views))
        reshape(*view, random);
  }
}

} // namespace

Bytes mutateProgram(const Bytes &bytes, Random &random) {
  std::unique_ptr<fb::ProgramT> program = random.oneIn(16) ? nullptr : unpack(bytes);
  if (!program) {
    std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    text = mutateText(text, bytes.size() + 64);
    const auto *begin = reinterpret_cast<const std::byte *>(text.data());
    return Bytes(begin, begin + text.size());
  }
  for (size_t changes = 1 + random.below(3); changes-- > 0;)
    change(*program, random);
  return pack(*program);
}

void mutateExtent(ProgramInput &input, Random &random) {
  std::unique_ptr<fb::ProgramT> program = unpack(input.program);
  auto manifest = runtime::manifestFromJson(input.manifest);
  if (!program || !manifest.ok())
    return;
  Places places(*program);
  std::vector<fb::ViewT *> views;
  for (auto *view : places.views)
    if (*view && !(*view)->shape.empty())
      views.push_back(view->get());
  if (views.empty())
    return;
  const int64_t from = random.of(random.of(views)->shape);
  static const int64_t extents[] = {0, 1, 2, 3, 5, 6, 16, 17, 33, 64};
  const int64_t to = random.of(extents);
  auto replace = [&](std::vector<int64_t> &shape) {
    std::replace(shape.begin(), shape.end(), from, to);
  };
  for (fb::ViewT *view : views) {
    const bool contiguous = view->strides == rowMajor(view->shape);
    replace(view->shape);
    if (contiguous)
      view->strides = rowMajor(view->shape);
  }
  for (runtime::Entry &entry : manifest->entries) {
    for (runtime::Parameter &p : entry.parameters) {
      replace(p.globalShape);
      for (runtime::Slice &slice : p.slices) {
        replace(slice.tensorShape);
        replace(slice.sizes);
      }
    }
    for (auto *values : {&entry.operands, &entry.results})
      for (runtime::EntryValue &value : *values)
        replace(value.globalShape);
  }
  for (auto &procedure : program->procedures)
    for (auto &stream : procedure->streams)
      for (auto &command : stream->commands)
        if (auto *launch = command->op.AsLaunch(); launch && launch->rows == from)
          launch->rows = to;
  input.program = pack(*program);
  input.manifest = toJson(*manifest);
}

} // namespace braid::fuzz
