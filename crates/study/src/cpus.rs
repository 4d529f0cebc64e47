//! Lists of CPUs as the kernel writes them: `0,2-3`.

/// Most CPUs that Linux counts (CONFIG_NR_CPUS of x86-64).
const MAX_CPU: u32 = 8192;

/// The CPUs of a list, ascending, each once. `None` when it is no list or names none.
pub(crate) fn parse(text: &str) -> Option<Vec<u32>> {
    let number = |part: &str| {
        let part = part.trim();
        part.parse::<u32>().ok().filter(|&cpu| cpu < MAX_CPU && part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cpus.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return None;
                }
                cpus.extend(first..=last);
            }
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Ascending CPUs as a list; `none` when there are none.
pub(crate) fn list(cpus: &[u32]) -> String {
    if cpus.is_empty() {
        return "none".to_owned();
    }
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let parts: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!(parse("0, 2-4,3"), Some(vec![0, 2, 3, 4]));
        assert_eq!(list(&[0, 2, 3, 4, 7]), "0,2-4,7");
        assert_eq!(list(&[]), "none");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "a", "3-1", "1-", "-1", "0,,1", "+1", "99999", "0-99999999"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
