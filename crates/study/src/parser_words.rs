//! What the reader of options and parameters says of a value, in words for people who do not know it.

/// A message of the reader, which is serde's, as it completes "`field` ..."; `None` where it is a sentence of a platform's or a workload's own.
pub(crate) fn plain(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: ")) {
        let (found, expected) = rest.split_once(", expected ")?;
        return Some(format!("must be {}, but here it is {}", wanted(expected), seen(found)));
    }
    if message.starts_with("unknown field `") {
        return Some("is no field that can be given here".to_owned());
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (found, expected) = rest.split_once(", expected ")?;
        let expected = expected.strip_prefix("one of ").unwrap_or(expected);
        return Some(format!("must be {}, but here it is {found}", expected.replace('`', "\"")));
    }
    let missing = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("has no `{missing}`"))
}

/// Whether the reader expected a list.
pub(crate) fn wants_list(message: &str) -> bool {
    message.ends_with(", expected a sequence")
}

fn wanted(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" | "string" => "a text",
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        other if other.starts_with("a nonzero ") => "a whole number above zero",
        other if other.starts_with("struct ") || other.starts_with("internally tagged ") => "a table",
        other if other.starts_with("enum ") => "one of a few words",
        other => other,
    }
}

fn seen(found: &str) -> String {
    let number = |kind: &str| found.strip_prefix(kind).map(|rest| format!("the number {}", rest.trim_matches('`')));
    let text = || found.strip_prefix("string ").map(|text| format!("the text {text}"));
    let flag = || found.strip_prefix("boolean ").map(str::to_owned);
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        other => number("integer ")
            .or_else(|| number("floating point "))
            .or_else(text)
            .or_else(flag)
            .unwrap_or_else(|| other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors matter")]
    struct Own {
        list: Vec<String>,
        number: u32,
        way: Way,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Way {
        Up,
        Down,
    }

    /// What serde says today of these values, in plain words.
    #[test]
    fn no_word_of_the_parser_is_left() {
        let said =
            |value| serde_json::from_value::<Own>(value).map_or_else(|error| plain(&error.to_string()), |_| None);
        let cases = [
            (json!({ "list": "true" }), "must be a list, but here it is the text \"true\""),
            (
                json!({ "list": [], "number": -1 }),
                "must be a whole number that is not negative, but here it is the number -1",
            ),
            (
                json!({ "list": [], "number": {} }),
                "must be a whole number that is not negative, but here it is a table",
            ),
            (json!({ "list": [], "number": 1, "way": "left" }), "must be \"up\" or \"down\", but here it is `left`"),
            (json!({ "colour": 1 }), "is no field that can be given here"),
            (json!({ "list": [], "number": 1 }), "has no `way`"),
        ];
        for (value, expected) in cases {
            assert_eq!(said(value).as_deref(), Some(expected));
        }
        assert_eq!(plain("there is no program to run"), None);
    }
}
