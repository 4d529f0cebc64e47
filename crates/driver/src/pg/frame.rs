//! Messages of the server as they lie in the buffer: read in place, whatever bytes they are.

/// Columns of a DataRow, in order. A row that is shorter than it says ends early.
#[derive(Debug, Clone)]
pub(crate) struct Columns<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Columns<'a> {
    /// Of the body of a DataRow.
    #[inline]
    pub fn of(body: &'a [u8]) -> Self {
        match body.split_first_chunk::<2>() {
            Some((count, rest)) => Self { rest, left: u16::from_be_bytes(*count) },
            None => Self { rest: &[], left: 0 },
        }
    }

    /// The next column as a binary integer of 4 or 8 bytes; `None` where it is missing, NULL or something else.
    #[inline]
    pub fn integer(&mut self) -> Option<i64> {
        match self.next()?? {
            value @ [_, _, _, _] => Some(i64::from(i32::from_be_bytes(value.try_into().ok()?))),
            value => Some(i64::from_be_bytes(value.try_into().ok()?)),
        }
    }
}

impl<'a> Iterator for Columns<'a> {
    /// `None` is NULL.
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => {
                self.rest = rest;
                Some(None)
            }
            Ok(length) => {
                let value = rest.get(..length)?;
                self.rest = &rest[length..];
                Some(Some(value))
            }
        }
    }
}

/// Fields of an ErrorResponse or NoticeResponse: what each is, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub const fn of(body: &'a [u8]) -> Self {
        Self { rest: body }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.rest.split_first().filter(|(kind, _)| **kind != 0)?;
        let (value, rest) = text(rest)?;
        self.rest = rest;
        Some((kind, value))
    }
}

/// A text that ends with a zero, and what follows it.
pub(crate) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Names of the columns in a RowDescription; `None` where it is shorter than it says.
pub(crate) fn column_names(body: &[u8]) -> Option<Vec<String>> {
    /// Table, column, type, size, modifier, format.
    const AFTER_NAME: usize = 4 + 2 + 4 + 2 + 4 + 2;
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let (name, after) = text(rest)?;
            rest = after.get(AFTER_NAME..)?;
            Some(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

/// Rows that a CommandComplete counts: the last word of it, such as 3 of `INSERT 0 3`; 0 where it counts none.
#[inline]
pub(crate) fn rows_of(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(b"\0").unwrap_or(body);
    let (mut rows, mut place) = (0u64, 1u64);
    for &byte in tag.iter().rev().take(19) {
        if !byte.is_ascii_digit() {
            break;
        }
        rows += u64::from(byte - b'0') * place;
        place *= 10;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = (columns.len() as u16).to_be_bytes().to_vec();
        for column in columns {
            body.extend(column.map_or(-1, |c| c.len() as i32).to_be_bytes());
            body.extend(column.unwrap_or_default());
        }
        body
    }

    #[test]
    fn a_row_is_read_in_place() {
        let body = row(&[Some(&7i32.to_be_bytes()), None, Some(b"x"), Some(&(-3i64).to_be_bytes())]);
        let mut columns = Columns::of(&body);
        assert_eq!(columns.integer(), Some(7));
        assert_eq!(columns.next(), Some(None));
        assert_eq!(columns.next(), Some(Some(&b"x"[..])));
        assert_eq!(columns.integer(), Some(-3));
        assert_eq!(columns.next(), None);
        assert_eq!(Columns::of(&row(&[Some(b"abc")])).integer(), None, "three bytes are no integer");
    }

    #[test]
    fn whatever_the_bytes_are_nothing_is_read_beyond_them() {
        let good = row(&[Some(b"abcd"), None, Some(b"efgh")]);
        for cut in 0..good.len() {
            assert!(Columns::of(&good[..cut]).count() < 3, "{cut}");
        }
        // One byte after another is made into everything that it can be.
        for at in 0..good.len() {
            for value in 0..=255u8 {
                let mut bad = good.clone();
                bad[at] = value;
                let read: usize = Columns::of(&bad).flatten().map(<[u8]>::len).sum();
                assert!(read <= bad.len());
                let _ = (Fields::of(&bad).count(), column_names(&bad), rows_of(&bad));
            }
        }
    }

    #[test]
    fn fields_and_names_end_where_the_bytes_do() {
        let body = b"SERROR\0C23505\0Mduplicate\0\0";
        let fields: Vec<_> = Fields::of(body).collect();
        assert_eq!(fields, [(b'S', &b"ERROR"[..]), (b'C', b"23505"), (b'M', b"duplicate")]);
        assert_eq!(Fields::of(b"SERROR\0C235").count(), 1, "a text without an end is none");
        let mut names = vec![0, 2];
        for name in [&b"a\0"[..], b"bc\0"] {
            names.extend(name);
            names.extend([0; 18]);
        }
        assert_eq!(column_names(&names).unwrap(), ["a", "bc"]);
        assert_eq!(column_names(&names[..names.len() - 1]), None);
    }

    #[test]
    fn the_count_is_the_last_word() {
        assert_eq!(rows_of(b"INSERT 0 3\0"), 3);
        assert_eq!(rows_of(b"UPDATE 120\0"), 120);
        assert_eq!(rows_of(b"BEGIN\0"), 0);
        assert_eq!(rows_of(b""), 0);
        assert!(rows_of(&[b'9'; 60]) > 0, "and no number overflows");
    }
}
