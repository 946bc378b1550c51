use std::ops::Range;

/// Walks through the header of a file that may be damaged: nothing is read
/// beyond its end, and no count is believed before what it counts could be
/// there. Errors are reasons for [`crate::Error::Invalid`].
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next `count` bytes, as a range of the file.
    pub fn range(&mut self, count: u64, what: &str) -> Result<Range<usize>, String> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(format!("{what} needs {count} bytes, {left} are left"));
        }
        let start = self.at;
        self.at += count as usize;
        Ok(start..self.at)
    }

    pub fn bytes(&mut self, count: u64, what: &str) -> Result<&'a [u8], String> {
        Ok(&self.bytes[self.range(count, what)?])
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let bytes = self.bytes(N as u64, what)?;
        bytes.try_into().map_err(|_| format!("{what} is cut off"))
    }

    pub fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A number of things that take at least `least` bytes each.
    pub fn count(&self, count: u64, least: u64, what: &str) -> Result<usize, String> {
        let left = (self.bytes.len() - self.at) as u64;
        if count.checked_mul(least).is_none_or(|bytes| bytes > left) {
            return Err(format!("{count} {what} can't be in the {left} bytes that are left"));
        }
        Ok(count as usize)
    }

    pub fn text(&mut self, length: u64, what: &str) -> Result<&'a str, String> {
        /// The names in any such file are much shorter.
        const LONGEST: u64 = 1 << 16;
        if length > LONGEST {
            return Err(format!("{what} has {length} bytes"));
        }
        std::str::from_utf8(self.bytes(length, what)?).map_err(|_| format!("{what} is not UTF-8"))
    }
}
