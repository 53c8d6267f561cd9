"""Compile the modules that the interop tests upload, with the reference compiler.

    compile_modules.py OUTDIR

writes into OUTDIR, for the CPU of this machine:

    vadd    vadd(a: float32[1024], b: float32[1024], c: float32[1024])         c = a + b
    matmul  matmul(a: float32[128, 128], b: ..., c: ...)                      c = a @ b
    answer  answer() -> int 42, and answer_of(unused: int) -> int 42
    model   Relax: main(x: float32[8, 16], w: float32[16, 4], b: float32[4])
            -> float32[8, 4]                                                  relu(x @ w + b)

Each is exported as NAME.so. All but the model come as NAME.tar (the object files that
a server links itself) and NAME.o as well; a Relax executable is more than object code.
The names and shapes are repeated in `tests/src/modules.rs`.
"""

import pathlib
import sys

import tvm
from tvm import relax, te
from tvm.script import ir as I
from tvm.script import tirx as T

VECTOR = 1024
MATRIX = 128


def vadd():
    a = te.placeholder((VECTOR,), "float32", name="a")
    b = te.placeholder((VECTOR,), "float32", name="b")
    c = te.compute((VECTOR,), lambda i: a[i] + b[i], name="c")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", "vadd")


def matmul():
    a = te.placeholder((MATRIX, MATRIX), "float32", name="a")
    b = te.placeholder((MATRIX, MATRIX), "float32", name="b")
    k = te.reduce_axis((0, MATRIX), name="k")
    c = te.compute((MATRIX, MATRIX), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", "matmul")


@I.ir_module
class Answer:
    @T.prim_func(s_tir=True)
    def answer() -> T.int64:
        return T.int64(42)

    @T.prim_func(s_tir=True)
    def answer_of(unused: T.int64) -> T.int64:
        return T.int64(42)


def model():
    x = relax.Var("x", relax.TensorType((8, 16), "float32"))
    w = relax.Var("w", relax.TensorType((16, 4), "float32"))
    b = relax.Var("b", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, b]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, w))
            biased = builder.emit(relax.op.add(product, b))
            result = builder.emit_output(relax.op.nn.relu(biased))
        builder.emit_func_output(result)
    return builder.get()


def main(outdir):
    outdir.mkdir(parents=True, exist_ok=True)
    kernels = {
        "vadd": tvm.IRModule.from_expr(vadd()),
        "matmul": tvm.IRModule.from_expr(matmul()),
        "answer": Answer,
    }
    for name, module in kernels.items():
        built = tvm.compile(module, target="llvm")
        built.export_library(str(outdir / f"{name}.so"))
        built.export_library(str(outdir / f"{name}.tar"))
        built.mod.write_to_file(str(outdir / f"{name}.o"))
    tvm.compile(model(), target="llvm").export_library(str(outdir / "model.so"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
