//! A Rust file as a flat list of tokens: enough for the rules, without a parser of the language.
//!
//! Comments and doc comments are not tokens. Tokens that exist only in tests are marked.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Word,
    /// One character of punctuation.
    Punct,
    /// A literal as written, quotes included.
    Literal,
    /// An opening delimiter, and where in the list its closing one is.
    Open {
        /// Index of the closing delimiter.
        close: usize,
    },
    /// A closing delimiter.
    Close,
}

/// One token.
#[derive(Debug, Clone)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// As written; empty for the delimiters of a macro's invisible group.
    pub text: String,
    /// Line, from 1.
    pub line: usize,
    /// Whether it is compiled for tests only.
    pub test: bool,
}

/// The tokens of a file.
#[derive(Debug, Default)]
pub struct Source {
    /// In the order of the file.
    pub tokens: Vec<Token>,
    /// First and last line of each item that is compiled for tests only, in order, not overlapping.
    pub test_items: Vec<(usize, usize)>,
}

impl Source {
    /// Splits `text` into tokens.
    ///
    /// # Errors
    /// The reason, when the text is not Rust.
    pub fn parse(text: &str) -> Result<Self, String> {
        let stream = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        let mut source = Self::default();
        source.flatten(stream, false);
        Ok(source)
    }

    /// How many lines the test items take.
    pub fn test_lines(&self) -> usize {
        self.test_items.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// The text of the token at `at`, or nothing past either end.
    pub fn text(&self, at: Option<usize>) -> &str {
        at.and_then(|at| self.tokens.get(at)).map_or("", |token| token.text.as_str())
    }

    fn flatten(&mut self, stream: TokenStream, within_test: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let (mut at, mut rest_is_test) = (0, within_test);
        while at < trees.len() {
            let Some(attribute) = Attribute::at(&trees, at) else {
                self.push(&trees[at], rest_is_test);
                at += 1;
                continue;
            };
            if attribute.is_doc() {
                at += attribute.length;
            } else if attribute.is_test() && attribute.inner {
                rest_is_test = true;
                at += attribute.length;
            } else if attribute.is_test() && !rest_is_test {
                let end = item_end(&trees, at + attribute.length);
                let lines = (trees[at].span().start().line, trees[end - 1].span().end().line);
                trees[at..end].iter().for_each(|tree| self.push(tree, true));
                self.test_items.push(lines);
                at = end;
            } else {
                trees[at..at + attribute.length].iter().for_each(|tree| self.push(tree, rest_is_test));
                at += attribute.length;
            }
        }
    }

    fn push(&mut self, tree: &TokenTree, test: bool) {
        let line = tree.span().start().line;
        let kind = match tree {
            TokenTree::Group(group) => return self.push_group(group, test),
            TokenTree::Ident(_) => Kind::Word,
            TokenTree::Punct(_) => Kind::Punct,
            TokenTree::Literal(_) => Kind::Literal,
        };
        self.tokens.push(Token { kind, text: tree.to_string(), line, test });
    }

    fn push_group(&mut self, group: &Group, test: bool) {
        let (open, close) = match group.delimiter() {
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::None => ("", ""),
        };
        let opening = self.tokens.len();
        let line = group.span_open().start().line;
        self.tokens.push(Token { kind: Kind::Open { close: 0 }, text: open.into(), line, test });
        self.flatten(group.stream(), test);
        let closing = self.tokens.len();
        self.tokens[opening].kind = Kind::Open { close: closing };
        let line = group.span_close().end().line;
        self.tokens.push(Token { kind: Kind::Close, text: close.into(), line, test });
    }
}

/// One past the last tree of the item that begins at `at`: its braces, or its semicolon.
fn item_end(trees: &[TokenTree], at: usize) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    trees[at..].iter().position(ends).map_or(trees.len(), |offset| at + offset + 1)
}

/// An attribute among trees: `#[...]` or `#![...]`.
struct Attribute {
    inner: bool,
    /// How many trees it takes.
    length: usize,
    words: Vec<String>,
}

impl Attribute {
    fn at(trees: &[TokenTree], at: usize) -> Option<Self> {
        let is = |at: usize, wanted: char| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == wanted);
        if !is(at, '#') {
            return None;
        }
        let inner = is(at + 1, '!');
        let length = if inner { 3 } else { 2 };
        let TokenTree::Group(group) = trees.get(at + length - 1)? else { return None };
        if group.delimiter() != Delimiter::Bracket {
            return None;
        }
        let mut words = Vec::new();
        collect_words(group.stream(), &mut words);
        Some(Self { inner, length, words })
    }

    fn is_doc(&self) -> bool {
        self.words.first().is_some_and(|word| word == "doc")
    }

    /// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, ...))]`; but not `#[cfg(not(test))]`.
    fn is_test(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["test"] | [_, "test"] if words[0] != "not" => true,
            ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not"),
            _ => false,
        }
    }
}

fn collect_words(stream: TokenStream, words: &mut Vec<String>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Group(group) => collect_words(group.stream(), words),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_for_tests_are_marked_whatever_they_are_guarded_by() {
        // Whether the body of `f` is compiled for tests only.
        let is_test =
            |text: &str| Source::parse(text).unwrap().tokens.iter().any(|token| token.text == "f" && token.test);
        for guard in
            ["#[cfg(test)] mod m {", "#[cfg(all(test, unix))] mod m {", "mod m { #[test]", "mod m { #[tokio::test]"]
        {
            assert!(is_test(&format!("{guard} fn f() {{}} }} fn g() {{}}")), "{guard}");
            assert!(!is_test(&format!("{guard} fn g() {{}} }} fn f() {{}}")), "{guard}: it ends with its item");
        }
        assert!(!is_test("#[cfg(not(test))] fn f() {}"));
        assert!(is_test("#![cfg(test)] fn f() {}"));
        assert!(!is_test("#[cfg(test)] mod m; fn f() {}"), "a guard ends with its item");
    }

    #[test]
    fn test_lines_are_those_from_the_attribute_to_the_brace() {
        let source = Source::parse("fn f() {}\n\n#[cfg(test)]\nmod m {\n\n    // hello\n}\n").unwrap();
        assert_eq!(source.test_lines(), 5);
    }

    #[test]
    fn comments_are_no_tokens() {
        let source = Source::parse("//! runc\n/// runc\n// runc\n/* runc */ struct A;").unwrap();
        assert_eq!(source.tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>(), ["struct", "A", ";"]);
    }
}
