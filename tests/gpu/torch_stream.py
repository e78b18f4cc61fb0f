# SPDX-License-Identifier: MIT
"""torch_stream.py <libdeepjit.so>

In a process that uses PyTorch, a launch that names no stream goes to torch's current stream: it is
captured by a torch graph, it follows torch.cuda.stream(), and it is ordered with torch's own work.
"""

import ctypes
import sys

SOURCE = b"""
extern "C" __global__ void add_to(float *data, float value, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        data[i] += value;
    }
}
"""
N = 100_000


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("native", ctypes.c_int32),
                ("origin", ctypes.c_char * 24), ("message", ctypes.c_char * 992)]


class Launch(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("grid", ctypes.c_uint32 * 3),
                ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_int64),
                ("stream", ctypes.c_void_p), ("stream_set", ctypes.c_bool),
                ("host", ctypes.c_void_p), ("cuda", ctypes.c_void_p)]


class Arg(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("size", ctypes.c_size_t), ("align", ctypes.c_size_t)]


class Library:
    def __init__(self, path):
        self.dj = ctypes.CDLL(path)
        self.dj.dj_backend_find.restype = ctypes.c_void_p
        self.error = Error()
        backend = self.dj.dj_backend_find(b"cuda")
        assert backend, "this build has no back end named cuda"
        self.runtime = ctypes.c_void_p()
        self.call("dj_runtime_create", ctypes.c_void_p(backend), None, ctypes.byref(self.runtime))

    def call(self, name, *args):
        status = getattr(self.dj, name)(*args, ctypes.byref(self.error))
        if status != 0:
            raise RuntimeError(f"{name}: status {status}: {self.error.message.decode()}")

    def compile(self, tag=b"add_to", source=SOURCE):
        kernel = ctypes.c_void_p()
        self.call("dj_compile", self.runtime, tag, source, ctypes.c_size_t(len(source)), None,
                  ctypes.byref(kernel))
        return kernel

    def add_to(self, kernel, tensor, value, default_stream=False):
        values = [ctypes.c_void_p(tensor.data_ptr()), ctypes.c_float(value), ctypes.c_int(N)]
        args = (Arg * 3)(*[Arg(ctypes.addressof(v), ctypes.sizeof(v), 0) for v in values])
        options = Launch(size=ctypes.sizeof(Launch), grid=((N + 255) // 256, 1, 1),
                         block=(256, 1, 1), stream_set=default_stream)
        self.call("dj_launch", kernel, ctypes.byref(options), args, ctypes.c_size_t(3))


def node_types(graph):
    driver = ctypes.CDLL("libcuda.so.1")
    handle = ctypes.c_void_p(graph.raw_cuda_graph())
    count = ctypes.c_size_t()
    assert driver.cuGraphGetNodes(handle, None, ctypes.byref(count)) == 0
    nodes = (ctypes.c_void_p * max(count.value, 1))()
    assert driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)) == 0
    types = []
    for i in range(count.value):
        kind = ctypes.c_int(-1)
        assert driver.cuGraphNodeGetType(ctypes.c_void_p(nodes[i]), ctypes.byref(kind)) == 0
        types.append(kind.value)
    return types


def check_captured(torch, library, kernel):
    """Exactly one node, a kernel; the replay does its work; an explicit NULL is not captured."""
    data = torch.zeros(N, device="cuda")
    other = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    for mode in ("global", "thread_local", "relaxed"):
        data.zero_()
        other.zero_()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        stream = torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
            library.add_to(kernel, data, 2.0)
            # Compiled and loaded within the capture, launched on the same stream.
            inside = library.compile(b"inside", SOURCE + b"// " + mode.encode())
        assert node_types(graph) == [0], (mode, node_types(graph))
        assert data.sum().item() == 0.0, mode
        graph.instantiate()
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert bool((data == 6.0).all()), mode
        library.add_to(inside, other, 1.0)
        torch.cuda.synchronize()
        assert bool((other == 1.0).all()), mode
        library.dj.dj_kernel_release(inside)


def check_ordered(torch, library, kernel):
    """On a side stream, behind torch work that takes a while and before torch work that reads."""
    stream = torch.cuda.Stream()
    a = torch.randn(4096, 4096, device="cuda")
    data = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(20):
            a = (a @ a).clamp(-1, 1)
        data.fill_(5.0)
        library.add_to(kernel, data, 1.5)
        result = data * 2
    stream.synchronize()
    assert bool((result == 13.0).all())
    # The current stream is asked at each launch: now it is the default one again.
    data.fill_(1.0)
    library.add_to(kernel, data, 1.0)
    torch.cuda.synchronize()
    assert bool((data == 2.0).all())


def check_explicit_default(torch, library, kernel):
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    data = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    # torch's streams do not block the default one, so that this launch is legal there.
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="relaxed"):
        library.add_to(kernel, data, 1.0, default_stream=True)
        library.add_to(kernel, data, 1.0)
    assert node_types(graph) == [0]
    torch.cuda.synchronize()
    assert bool((data == 1.0).all())


def main():
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch here: {error}")
        sys.exit(77)
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        sys.exit(77)
    library = Library(sys.argv[1])
    torch.cuda.init()
    kernel = library.compile()
    data = torch.zeros(N, device="cuda")
    library.add_to(kernel, data, 1.0)
    torch.cuda.synchronize()
    for check in (check_captured, check_ordered, check_explicit_default):
        check(torch, library, kernel)
        print(f"ok      {check.__name__}", flush=True)
    library.dj.dj_kernel_release(kernel)
    library.dj.dj_runtime_release(library.runtime)
    print(f"3 passed, 0 skipped, 0 failed\n(torch {torch.__version__})")


main()
