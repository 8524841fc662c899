# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI of the runtime (runtime/include/braid_rt.h), whose errors become exceptions."""
import ctypes

import numpy as np

from braidtest import BUILD

DTYPES = {0: np.float32, 1: np.float16, 3: np.float64, 4: np.int32, 5: np.int64, 6: np.int8}


class Runtime:
    def __init__(self):
        self.library = ctypes.CDLL(BUILD / "lib/libBraidRuntime.so")
        self.library.braid_error_message.restype = ctypes.c_char_p
        for function in "braid_execution_input", "braid_execution_output":
            getattr(self.library, function).restype = ctypes.c_char_p

    def __call__(self, function, *arguments):
        error = ctypes.c_void_p()
        if getattr(self.library, f"braid_{function}")(*arguments, ctypes.byref(error)):
            message = self.library.braid_error_message(error).decode()
            self.library.braid_error_free(error)
            raise RuntimeError(message)

    def make(self, function, *arguments):
        made = ctypes.c_void_p()
        self(function, *arguments, ctypes.byref(made))
        return made


class WorldOptions(ctypes.Structure):
    """braid_world_options."""
    _fields_ = [("size", ctypes.c_size_t), ("transport", ctypes.c_char_p), ("ranks", ctypes.c_int64),
                ("threads_per_rank", ctypes.c_int64), ("time_limit_seconds", ctypes.c_double), ("trace", ctypes.c_int),
                ("target", ctypes.c_char_p), ("cuda_graph", ctypes.c_int), ("pin", ctypes.c_int),
                ("spin_microseconds", ctypes.c_double), ("cuda_library", ctypes.c_char_p), ("communicator", ctypes.c_void_p)]


def join(runtime, bundle):
    """The processes of which a launcher's variables say that this is one. To be freed before this one ends."""
    opened = runtime.make("bundle_open", str(bundle).encode())
    communicator = runtime.make("communicator_join", opened, None, ctypes.c_double(60))
    runtime.library.braid_bundle_free(opened)
    return communicator


def load_model(runtime, bundle, transport, **others):
    options = WorldOptions()
    runtime.library.braid_world_options_init(ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
    options.transport = transport.encode()
    for name, value in others.items():
        setattr(options, name, value)
    opened = runtime.make("bundle_open", str(bundle).encode())
    world = runtime.make("world_create", ctypes.byref(options))
    model = runtime.make("model_load", world, opened)
    runtime.library.braid_world_free(world)
    runtime.library.braid_bundle_free(opened)
    return model


class Session:
    """A bundle of one entry without weights."""

    def __init__(self, runtime, bundle, transport, **others):
        self.runtime = runtime
        self.model = load_model(runtime, bundle, transport, **others)
        self.execution = self.runtime.make("model_execution", self.model, None)
        self.inputs, self.outputs = self._values("input"), self._values("output")

    def _values(self, kind):
        values = {}
        count = getattr(self.runtime.library, f"braid_execution_num_{kind}s")
        count.restype = ctypes.c_size_t
        for index in range(count(self.execution)):
            dtype, shape, rank = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
            name = getattr(self.runtime.library, f"braid_execution_{kind}")(
                self.execution, ctypes.c_size_t(index), ctypes.byref(dtype), ctypes.byref(shape), ctypes.byref(rank))
            values[name.decode()] = dtype.value, tuple(shape[:rank.value])
        return values

    def run(self, inputs):
        for name, value in inputs.items():
            dtype, shape = self.inputs[name]
            value = np.ascontiguousarray(value, DTYPES[dtype])
            assert value.shape == shape
            self.runtime("execution_set_input", self.execution, name.encode(), dtype, (ctypes.c_int64 * len(shape))(*shape),
                         ctypes.c_size_t(len(shape)), value.ctypes.data_as(ctypes.c_void_p))
        self.runtime("execution_run", self.execution)
        results = {}
        for name, (dtype, shape) in self.outputs.items():
            value = np.zeros(shape, DTYPES[dtype])
            self.runtime("execution_get_output", self.execution, name.encode(), value.ctypes.data_as(ctypes.c_void_p),
                         ctypes.c_size_t(value.nbytes))
            results[name] = value
        return results

    def free(self):
        self.runtime.library.braid_model_free(self.model)
