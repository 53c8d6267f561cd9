//! Tensors in `.npy` files.
//!
//! `bfloat16` has no type of numpy's own; it is stored as numpy stores the one of `ml_dtypes`, as raw
//! data of two bytes.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder};
use rpc_proto::DataType;

use crate::argspec;
use crate::tensor::LocalTensor;

/// The types of both sides.
const TYPES: [(DataType, &str); 13] = [
    (DataType::BOOL, "|b1"),
    (DataType::INT8, "|i1"),
    (DataType::INT16, "<i2"),
    (DataType::INT32, "<i4"),
    (DataType::INT64, "<i8"),
    (DataType::UINT8, "|u1"),
    (DataType::UINT16, "<u2"),
    (DataType::UINT32, "<u4"),
    (DataType::UINT64, "<u8"),
    (DataType::FLOAT16, "<f2"),
    (DataType::FLOAT32, "<f4"),
    (DataType::FLOAT64, "<f8"),
    (DataType::BFLOAT16, "<V2"),
];

/// Reads the tensor in a file.
pub(crate) fn read(path: &Path) -> Result<LocalTensor> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    parse(BufReader::new(file)).with_context(|| path.display().to_string())
}

/// Reads a file that has to hold a tensor of this type and shape.
pub(crate) fn read_expected(path: &Path, dtype: DataType, shape: &[i64]) -> Result<LocalTensor> {
    let tensor = read(path)?;
    ensure!(
        tensor.dtype == dtype && tensor.shape == shape,
        "{} holds {}{:?}, not {dtype}{shape:?}",
        path.display(),
        tensor.dtype,
        tensor.shape,
    );
    Ok(tensor)
}

/// Writes a tensor into a file.
pub(crate) fn write(path: &Path, tensor: &LocalTensor) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        format(tensor, &mut file)?;
        Ok(file.flush()?)
    };
    write().with_context(|| path.display().to_string())
}

/// Can a file hold tensors of this type?
pub(crate) fn check(dtype: DataType) -> Result<()> {
    type_of(dtype).map(|_| ())
}

fn parse(mut reader: impl Read) -> Result<LocalTensor> {
    let header = NpyHeader::from_reader(&header(&mut reader)?[..])?;
    let DType::Plain(stored) = header.dtype() else {
        bail!("it holds {}, not plain numbers", header.dtype().descr());
    };
    let dtype = dtype_of(&stored)
        .with_context(|| format!("it holds {stored}, which no tensor is made of here"))?;
    let sizes = header.shape().iter().map(|size| i64::try_from(*size));
    let shape: Vec<i64> = sizes.collect::<Result<_, _>>()?;
    let nbytes = argspec::nbytes(dtype, &shape)
        .with_context(|| format!("no tensor of {dtype} has the shape {shape:?}"))?;

    let mut bytes = Vec::new();
    reader.take(nbytes as u64).read_to_end(&mut bytes)?;
    ensure!(
        bytes.len() == nbytes,
        "it ends after {} of {nbytes} bytes of {dtype}{shape:?}",
        bytes.len()
    );
    let width = usize::try_from(stored.size_field())?;
    if stored.endianness() == Endianness::Big {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    if header.order() == Order::Fortran && shape.len() > 1 {
        bytes = row_major(&bytes, width, header.shape())?;
    }
    Ok(LocalTensor {
        dtype,
        shape,
        bytes,
    })
}

/// The bytes of the header, up to the data, if it can be one of plain numbers.
///
/// The parser takes memory for as long a header as the file says, and time that doubles with each level of
/// nested lists, which plain numbers have none of.
fn header(reader: &mut impl Read) -> Result<Vec<u8>> {
    /// Those of plain numbers have some hundred bytes.
    const LONGEST: u32 = 1 << 16;
    let mut bytes = vec![0; 8];
    reader.read_exact(&mut bytes)?;
    ensure!(bytes.starts_with(b"\x93NUMPY"), "it is no .npy file");
    let width = if bytes[6] == 1 { 2 } else { 4 };
    let mut length = [0; 4];
    reader.read_exact(&mut length[..width])?;
    bytes.extend(&length[..width]);
    let length = u32::from_le_bytes(length);
    ensure!(
        length <= LONGEST,
        "its header has {length} bytes, more than {LONGEST}"
    );
    let start = bytes.len();
    reader.take(length.into()).read_to_end(&mut bytes)?;
    ensure!(
        !bytes[start..].contains(&b'['),
        "it holds records, not plain numbers"
    );
    Ok(bytes)
}

fn format(tensor: &LocalTensor, writer: &mut impl Write) -> Result<()> {
    let sizes = tensor.shape.iter().map(|size| u64::try_from(*size));
    WriteOptions::new_header_only()
        .dtype(DType::new_scalar(type_of(tensor.dtype)?))
        .shape(&sizes.collect::<Result<Vec<_>, _>>()?)
        .writer(&mut *writer)
        .write_header_only()?;
    Ok(writer.write_all(&tensor.bytes)?)
}

fn type_of(dtype: DataType) -> Result<TypeStr> {
    let known = TYPES.iter().find(|(known, _)| *known == dtype);
    let (_, text) = known.with_context(|| format!("a .npy file cannot hold {dtype}"))?;
    Ok(text.parse()?)
}

fn dtype_of(stored: &TypeStr) -> Option<DataType> {
    let size = stored.size_field();
    Some(match (stored.type_char(), size) {
        (TypeChar::Bool, 1) => DataType::BOOL,
        (TypeChar::RawData, 2) => DataType::BFLOAT16,
        (TypeChar::Int, 1 | 2 | 4 | 8) => format!("int{}", 8 * size).parse().ok()?,
        (TypeChar::Uint, 1 | 2 | 4 | 8) => format!("uint{}", 8 * size).parse().ok()?,
        (TypeChar::Float, 2 | 4 | 8) => format!("float{}", 8 * size).parse().ok()?,
        _ => return None,
    })
}

/// The elements of `width` bytes, stored with the first index running fastest, reordered so that the
/// last one does.
fn row_major(bytes: &[u8], width: usize, shape: &[u64]) -> Result<Vec<u8>> {
    let sizes = shape.iter().map(|size| usize::try_from(*size));
    let shape: Vec<usize> = sizes.collect::<Result<_, _>>()?;
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, size| {
            let this = *stride;
            *stride *= size;
            Some(this)
        })
        .collect();
    let mut ordered = Vec::with_capacity(bytes.len());
    for index in 0..bytes.len() / width {
        let mut rest = index;
        let mut stored = 0;
        for (size, stride) in shape.iter().zip(&strides).rev() {
            stored += rest % size * stride;
            rest /= size;
        }
        ordered.extend_from_slice(&bytes[stored * width..][..width]);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version 1, as `numpy.save` writes it.
    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let dict =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let header = format!("{dict:<117}\n");
        let len = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), data].concat()
    }

    fn tensor(dtype: &str, shape: &[i64], bytes: &[u8]) -> LocalTensor {
        LocalTensor {
            dtype: dtype.parse().unwrap(),
            shape: shape.to_vec(),
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn reads_types_byte_orders_and_layouts() {
        let bytes = [1, 2, 3, 4, 5, 6];
        for (file, expected) in [
            (
                file("|u1", "False", "(2, 3)", &bytes),
                tensor("uint8", &[2, 3], &bytes),
            ),
            (
                file("<i2", "False", "(3,)", &bytes),
                tensor("int16", &[3], &bytes),
            ),
            (
                file(">i2", "False", "(3,)", &bytes),
                tensor("int16", &[3], &[2, 1, 4, 3, 6, 5]),
            ),
            // numpy.array([[1, 2, 3], [4, 5, 6]], order="F") lies in memory as 1 4 2 5 3 6.
            (
                file("|i1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]),
                tensor("int8", &[2, 3], &bytes),
            ),
            (
                file("<f2", "True", "(1, 3)", &bytes),
                tensor("float16", &[1, 3], &bytes),
            ),
            (file("|b1", "False", "()", &[1]), tensor("bool", &[], &[1])),
            (
                file("<V2", "False", "(3,)", &bytes),
                tensor("bfloat16", &[3], &bytes),
            ),
            (
                file("<f8", "False", "(0, 4)", &[]),
                tensor("float64", &[0, 4], &[]),
            ),
        ] {
            assert_eq!(parse(&file[..]).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_tensor_is_refused() {
        for (file, hint) in [
            (b"PK\x03\x04 an archive".to_vec(), ""),
            (Vec::new(), ""),
            (
                b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(),
                "its header has 4294967295 bytes",
            ),
            (
                file(&"[".repeat(60), "False", "()", &[]),
                "it holds records",
            ),
            (
                file("<f4", "False", "(2,)", &[0; 7]),
                "ends after 7 of 8 bytes",
            ),
            (file("<c8", "False", "(1,)", &[0; 8]), "it holds <c8"),
            (file("|S4", "False", "(1,)", &[0; 4]), "it holds |S4"),
            (
                file("<f4", "False", "(9223372036854775807,)", &[]),
                "no tensor of float32",
            ),
        ] {
            let error = format!("{:#}", parse(&file[..]).unwrap_err());
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn every_type_survives_a_file() {
        for (dtype, text) in TYPES {
            let width = usize::try_from(dtype.bytes_of(1).unwrap()).unwrap();
            let bytes: Vec<u8> = (0..6).map(|i| i % 2).flat_map(|i| vec![i; width]).collect();
            let tensor = tensor(&dtype.to_string(), &[2, 3], &bytes);
            let mut file = Vec::new();
            format(&tensor, &mut file).unwrap();
            assert!(String::from_utf8_lossy(&file).contains(text), "{text}");
            assert_eq!(parse(&file[..]).unwrap(), tensor);
        }
        assert!(check("float8_e4m3fn".parse().unwrap()).is_err());
    }

    #[test]
    fn another_tensor_than_expected_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.npy");
        let found = tensor("int8", &[2], &[1, 2]);
        write(&path, &found).unwrap();
        assert_eq!(read_expected(&path, DataType::INT8, &[2]).unwrap(), found);
        let error = read_expected(&path, DataType::FLOAT32, &[1024]).unwrap_err();
        let expected = format!("{} holds int8[2], not float32[1024]", path.display());
        assert_eq!(error.to_string(), expected);
    }
}
