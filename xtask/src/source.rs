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

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// `name`, or `Type::name` inside an `impl`.
    pub name: String,
    /// Line of `fn`.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both included.
    pub lines: usize,
    /// Whether it is compiled for tests only.
    pub test: bool,
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

    /// All functions with a body, nested ones too.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        let mut owners: Vec<(usize, String)> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            owners.retain(|(close, _)| at < *close);
            if token.kind != Kind::Word {
                continue;
            }
            if token.text == "impl" && self.starts_item(at) {
                owners.extend(self.owner(at));
            }
            let named = self.tokens.get(at + 1).filter(|next| next.kind == Kind::Word);
            if let (true, Some(name)) = (token.text == "fn", named)
                && let Some((_, close)) = self.body(at)
            {
                let owner = owners.last().map(|(_, owner)| format!("{owner}::")).unwrap_or_default();
                functions.push(Function {
                    name: format!("{owner}{}", name.text),
                    line: token.line,
                    lines: self.tokens[close].line - token.line + 1,
                    test: token.test,
                });
            }
        }
        functions
    }

    /// Whether the word at `at` begins an item, as `impl` does not in `-> impl Trait`.
    fn starts_item(&self, at: usize) -> bool {
        matches!(self.text(at.checked_sub(1)), "" | "{" | "}" | ";" | "]" | "unsafe" | "default")
    }

    /// Opening and closing brace of the item that begins at `at`; none when it ends in `;`.
    fn body(&self, at: usize) -> Option<(usize, usize)> {
        let mut at = at;
        loop {
            let token = self.tokens.get(at)?;
            match token.kind {
                Kind::Open { close } if token.text == "{" => return Some((at, close)),
                Kind::Open { close } => at = close + 1,
                Kind::Close => return None,
                _ if token.text == ";" => return None,
                _ => at += 1,
            }
        }
    }

    /// The end of the `impl` at `at`, and the name of the type that it is for.
    fn owner(&self, at: usize) -> Option<(usize, String)> {
        let (open, close) = self.body(at)?;
        let (mut angle, mut name) = (0_i32, String::new());
        for (index, token) in self.tokens.iter().enumerate().take(open).skip(at + 1) {
            match token.text.as_str() {
                "<" => angle += 1,
                ">" if self.text(index.checked_sub(1)) != "-" => angle -= 1,
                "where" if angle == 0 => break,
                word if token.kind == Kind::Word && angle == 0 && word != "for" => name = word.to_owned(),
                _ => {}
            }
        }
        Some((close, name))
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(text: &str) -> Vec<(String, usize, bool)> {
        let functions = Source::parse(text).unwrap().functions();
        functions.into_iter().map(|function| (function.name, function.lines, function.test)).collect()
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace_and_named_by_type() {
        let text = "
            impl<T: Fn() -> u8> Run for Thing<T> where T: Sized {
                fn go(
                    x: fn(u8) -> u8,
                ) {
                }
            }
            fn free() -> impl Sized { 1 }
            trait A { fn no_body(); }";
        assert_eq!(names(text), [("Thing::go".into(), 4, false), ("free".into(), 1, false)]);
    }

    #[test]
    fn items_for_tests_are_marked_whatever_they_are_guarded_by() {
        for guard in
            ["#[cfg(test)] mod m {", "#[cfg(all(test, unix))] mod m {", "mod m { #[test]", "mod m { #[tokio::test]"]
        {
            assert_eq!(names(&format!("{guard} fn f() {{}} }} fn g() {{}}"))[0], ("f".into(), 1, true), "{guard}");
        }
        assert!(!names("#[cfg(not(test))] fn f() {}")[0].2);
        assert!(names("#![cfg(test)] fn f() {}")[0].2);
        assert!(!names("#[cfg(test)] mod m; fn f() {}")[0].2, "a guard ends with its item");
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
