use std::ops::Range;

/// Reads the header of a file that may be damaged. Nothing is read beyond the
/// end, and [`HeaderReader::count`] refuses counts that the remaining bytes can't
/// hold. Errors are reasons for [`crate::Error::Invalid`]; `what` names the
/// value in them.
#[derive(Debug)]
pub(crate) struct HeaderReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> HeaderReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub fn position(&self) -> usize {
        self.position
    }

    pub fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// The next `count` bytes, as a range of the file.
    pub fn range(&mut self, count: u64, what: &str) -> Result<Range<usize>, String> {
        let remaining = (self.bytes.len() - self.position) as u64;
        if count > remaining {
            return Err(format!("{what} needs {count} bytes, {remaining} are left"));
        }
        let start = self.position;
        self.position += count as usize;
        Ok(start..self.position)
    }

    pub fn bytes(&mut self, count: u64, what: &str) -> Result<&'a [u8], String> {
        Ok(&self.bytes[self.range(count, what)?])
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let bytes = self.bytes(N as u64, what)?;
        bytes.try_into().map_err(|_| format!("{what} is cut off"))
    }

    pub fn u16(&mut self, what: &str) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// `count` as a `usize`, if that many values of at least `min_bytes` each
    /// fit the remaining bytes.
    pub fn count(&self, count: u64, min_bytes: u64, what: &str) -> Result<usize, String> {
        let remaining = (self.bytes.len() - self.position) as u64;
        if count.checked_mul(min_bytes).is_none_or(|bytes| bytes > remaining) {
            return Err(format!("{count} {what} can't be in the {remaining} bytes that are left"));
        }
        Ok(count as usize)
    }

    /// Bytes that were read before, as UTF-8.
    pub fn text_at(&self, range: Range<usize>, what: &str) -> Result<&'a str, String> {
        let bytes = self.bytes.get(range).ok_or_else(|| format!("{what} is cut off"))?;
        std::str::from_utf8(bytes).map_err(|_| format!("{what} is not UTF-8"))
    }

    /// The next `length` bytes as UTF-8.
    pub fn text(&mut self, length: u64, what: &str) -> Result<&'a str, String> {
        /// Names in real files are much shorter.
        const MAX_BYTES: u64 = 1 << 16;
        if length > MAX_BYTES {
            return Err(format!("{what} has {length} bytes"));
        }
        std::str::from_utf8(self.bytes(length, what)?).map_err(|_| format!("{what} is not UTF-8"))
    }
}
