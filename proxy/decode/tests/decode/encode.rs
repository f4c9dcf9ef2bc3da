//! Bodies in every coding, as servers write them: whole, or flushed after every frame.

use std::io::Write;

use decode::Coding;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// An encoding; `deflate` has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zlib,
    RawDeflate,
    Brotli,
    Zstd,
    ZstdChecked,
}

impl Encoding {
    pub(crate) const ALL: [Self; 6] =
        [Self::Gzip, Self::Zlib, Self::RawDeflate, Self::Brotli, Self::Zstd, Self::ZstdChecked];

    pub(crate) fn coding(self) -> Coding {
        match self {
            Self::Gzip => Coding::Gzip,
            Self::Zlib | Self::RawDeflate => Coding::Deflate,
            Self::Brotli => Coding::Brotli,
            Self::Zstd | Self::ZstdChecked => Coding::Zstd,
        }
    }

    /// `frames` encoded with a flush after each: the encoded slices, and a last one with the end.
    pub(crate) fn flushed(self, frames: &[&[u8]]) -> Vec<Vec<u8>> {
        match self {
            Self::Gzip => by_writer(
                GzEncoder::new(Vec::new(), Compression::default()),
                frames,
                |w| w.finish().expect("memory"),
                GzEncoder::get_mut,
            ),
            Self::Zlib => by_writer(
                ZlibEncoder::new(Vec::new(), Compression::default()),
                frames,
                |w| w.finish().expect("memory"),
                ZlibEncoder::get_mut,
            ),
            Self::RawDeflate => by_writer(
                DeflateEncoder::new(Vec::new(), Compression::default()),
                frames,
                |w| w.finish().expect("memory"),
                DeflateEncoder::get_mut,
            ),
            Self::Brotli => by_writer(
                brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22),
                frames,
                brotli::CompressorWriter::into_inner,
                brotli::CompressorWriter::get_mut,
            ),
            Self::Zstd => zstd(frames, false),
            Self::ZstdChecked => zstd(frames, true),
        }
    }

    /// `plain` encoded in one call.
    pub(crate) fn whole(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Self::Gzip => written(GzEncoder::new(Vec::new(), Compression::best()), plain).finish(),
            Self::Zlib => written(ZlibEncoder::new(Vec::new(), Compression::best()), plain).finish(),
            Self::RawDeflate => written(DeflateEncoder::new(Vec::new(), Compression::best()), plain).finish(),
            Self::Brotli => {
                Ok(written(brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22), plain).into_inner())
            }
            Self::Zstd => {
                let mut out = vec![0; zstd_safe::compress_bound(plain.len())];
                let length = zstd_safe::compress(&mut out[..], plain, 3).expect("space for the worst case");
                out.truncate(length);
                Ok(out)
            }
            Self::ZstdChecked => Ok(zstd(&[plain], true).concat()),
        }
        .expect("memory")
    }

    /// The oracle: the library's own call for a whole body.
    pub(crate) fn decode_at_once(self, body: &[u8]) -> Option<Vec<u8>> {
        use std::io::Read;
        let mut plain = Vec::new();
        let all = match self {
            Self::Gzip => flate2::read::MultiGzDecoder::new(body).read_to_end(&mut plain),
            Self::Zlib => flate2::read::ZlibDecoder::new(body).read_to_end(&mut plain),
            Self::RawDeflate => flate2::read::DeflateDecoder::new(body).read_to_end(&mut plain),
            Self::Brotli => brotli::Decompressor::new(body, 4096).read_to_end(&mut plain),
            Self::Zstd | Self::ZstdChecked => {
                plain = vec![0; 16 << 20];
                let length = zstd_safe::decompress(&mut plain[..], body).ok()?;
                plain.truncate(length);
                Ok(length)
            }
        };
        all.ok().map(|_| plain)
    }
}

fn written<W: Write>(mut writer: W, plain: &[u8]) -> W {
    writer.write_all(plain).expect("memory");
    writer
}

fn by_writer<W: Write>(
    mut writer: W,
    frames: &[&[u8]],
    finish: impl FnOnce(W) -> Vec<u8>,
    inner: impl Fn(&mut W) -> &mut Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut slices = Vec::new();
    for frame in frames {
        writer.write_all(frame).expect("memory");
        writer.flush().expect("memory");
        slices.push(std::mem::take(inner(&mut writer)));
    }
    slices.push(finish(writer));
    slices
}

fn zstd(frames: &[&[u8]], checked: bool) -> Vec<Vec<u8>> {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::ChecksumFlag(checked)).expect("a known parameter");
    let mut step = |plain: &[u8], directive| {
        let mut slice = Vec::new();
        let mut input = InBuffer::around(plain);
        loop {
            let mut buffer = vec![0; 1 << 16];
            let mut output = OutBuffer::around(&mut buffer[..]);
            let left = context.compress_stream2(&mut output, &mut input, directive).expect("it compresses");
            let length = output.pos();
            slice.extend_from_slice(&buffer[..length]);
            if left == 0 {
                return slice;
            }
        }
    };
    let mut slices: Vec<_> =
        frames.iter().map(|frame| step(frame, ZSTD_EndDirective::ZSTD_e_flush)).collect();
    slices.push(step(&[], ZSTD_EndDirective::ZSTD_e_end));
    slices
}
