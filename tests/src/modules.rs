//! Modules built by the reference compiler (`tests/peers/compile_modules.py`).
//!
//! Everything is `float32` in row-major order and for the CPU of this machine.

use std::path::PathBuf;

use crate::prepared_path;

/// One compiled module and its main function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledModule {
    /// The name of its files, without extension.
    pub name: &'static str,
    /// The function that [`name`](Self::name) is about.
    pub function: &'static str,
}

/// `vadd(a, b, c)`: `c = a + b`, three vectors of [`VADD_LEN`] elements.
pub const VADD: CompiledModule = CompiledModule {
    name: "vadd",
    function: "vadd",
};

/// Elements of each argument of [`VADD`].
pub const VADD_LEN: usize = 1024;

/// `matmul(a, b, c)`: `c = a × b`, three square matrices of [`MATMUL_SIDE`] rows.
pub const MATMUL: CompiledModule = CompiledModule {
    name: "matmul",
    function: "matmul",
};

/// Rows and columns of each argument of [`MATMUL`].
pub const MATMUL_SIDE: usize = 128;

/// `answer()` returns the integer 42; so does `answer_of(int)`, whatever its argument.
pub const ANSWER: CompiledModule = CompiledModule {
    name: "answer",
    function: "answer",
};

/// A Relax model of three operators: `main(x, w, b)` returns `relu(x × w + b)`.
///
/// The library's `vm_load_executable()` returns the module of the virtual machine, and that
/// module's `vm_initialization(device type, device id, allocator)` must be called before
/// `main`; allocator 2 is the pooled one. There is a shared library only.
pub const MODEL: CompiledModule = CompiledModule {
    name: "model",
    function: "main",
};

/// Shape of the first argument of [`MODEL`].
pub const MODEL_X: [usize; 2] = [8, 16];
/// Shape of the second argument of [`MODEL`].
pub const MODEL_W: [usize; 2] = [16, 4];
/// Shape of the third argument of [`MODEL`].
pub const MODEL_B: [usize; 1] = [4];
/// Shape of the result of [`MODEL`].
pub const MODEL_RESULT: [usize; 2] = [8, 4];

/// `0, 1, 2, …` up to 16 and again, scaled, as the elements of a tensor of `shape`: they are exact, and so
/// are their sums and products, if the scale has few binary digits.
///
/// # Panics
///
/// When a size is beyond the integers of shapes.
pub fn elements<const N: usize>(shape: [usize; N], scale: f32) -> (Vec<i64>, Vec<f32>) {
    let count = shape.iter().product::<usize>();
    let element = |index: usize| f32::from(u8::try_from(index % 17).expect("below 17")) * scale;
    let shape = shape.map(|size| i64::try_from(size).expect("a small size"));
    (shape.to_vec(), (0..count).map(element).collect())
}

/// The product of two matrices, in row-major order.
pub fn product(a: &[f32], b: &[f32], inner: usize, columns: usize) -> Vec<f32> {
    let cell = |row: &[f32], column: usize| {
        let terms = row.iter().enumerate();
        terms.map(|(k, x)| x * b[k * columns + column]).sum()
    };
    a.chunks(inner)
        .flat_map(|row| (0..columns).map(move |column| cell(row, column)))
        .collect()
}

impl CompiledModule {
    /// The three files of each module but [`MODEL`].
    pub fn files(&self) -> [PathBuf; 3] {
        [self.shared_library(), self.archive(), self.object()]
    }

    /// The linked shared library, `NAME.so`.
    pub fn shared_library(&self) -> PathBuf {
        self.file("so")
    }

    /// The object files in a tar archive, `NAME.tar`, which a server links itself.
    pub fn archive(&self) -> PathBuf {
        self.file("tar")
    }

    /// The object file, `NAME.o`, which a server links itself.
    pub fn object(&self) -> PathBuf {
        self.file("o")
    }

    fn file(&self, extension: &str) -> PathBuf {
        let path = prepared_path("TVM_RPC_MODULES").join(format!("{}.{extension}", self.name));
        assert!(
            path.is_file(),
            "{} does not exist: run `cargo xtask interop`",
            path.display()
        );
        path
    }
}
