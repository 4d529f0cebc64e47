//! Findings to HTML, Markdown, JSON and CSV.
