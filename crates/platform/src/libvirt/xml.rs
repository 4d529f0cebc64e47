//! libvirt's descriptions: a small tree that is written and read by an XML library, so that no value can be taken for
//! markup.

use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use super::error::LibvirtError;

/// Deeper descriptions are none of libvirt's.
const DEPTH_MAX: usize = 64;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Self>,
    pub text: String,
}

impl Node {
    /// An empty element.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The same with an attribute.
    pub(super) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.attributes.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same with text in it.
    pub(super) fn text(mut self, text: impl ToString) -> Self {
        self.text = text.to_string();
        self
    }

    /// The same with a further element inside.
    pub(super) fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    /// The same with further elements inside.
    pub(super) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children);
        self
    }

    /// The first element on a path of names from here, such as `os/type`.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |node, name| node.children.iter().find(|child| child.name == name))
    }

    /// All elements inside of that name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// As XML.
    pub(super) fn write(&self) -> Result<String, LibvirtError> {
        let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
        self.write_to(&mut writer).map_err(|error| unreadable(&self.name, error))?;
        String::from_utf8(writer.into_inner()).map_err(|error| unreadable(&self.name, error))
    }

    fn write_to(&self, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
        let attributes = self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let start = BytesStart::new(self.name.as_str()).with_attributes(attributes);
        if self.text.is_empty() && self.children.is_empty() {
            return writer.write_event(Event::Empty(start));
        }
        writer.write_event(Event::Start(start))?;
        if !self.text.is_empty() {
            writer.write_event(Event::Text(BytesText::new(&self.text)))?;
        }
        self.children.iter().try_for_each(|child| child.write_to(writer))?;
        writer.write_event(Event::End(BytesEnd::new(self.name.as_str())))
    }

    /// The outermost element of a document.
    pub(super) fn parse(text: &str) -> Result<Self, LibvirtError> {
        Self::read(text).map_err(|why| unreadable("what libvirt sent", why))
    }

    fn read(text: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(text);
        // The outermost collects the document's own element.
        let mut open = vec![Self::default()];
        loop {
            let event = reader.read_event().map_err(|error| error.to_string())?;
            let Some(inner) = open.last_mut() else { return Err("an element ends that did not begin".into()) };
            match event {
                Event::Start(start) => {
                    if open.len() > DEPTH_MAX {
                        return Err(format!("elements lie more than {DEPTH_MAX} deep"));
                    }
                    open.push(element(&start)?);
                }
                Event::Empty(start) => inner.children.push(element(&start)?),
                Event::End(_) => {
                    let ended = open.pop().unwrap_or_default();
                    let Some(around) = open.last_mut() else { return Err("an element ends that did not begin".into()) };
                    around.children.push(Self { text: ended.text.trim().to_owned(), ..ended });
                }
                Event::Text(text) => inner.text.push_str(&text.xml10_content()),
                Event::CData(text) => inner.text.push_str(&text.xml10_content()),
                Event::GeneralRef(name) => inner.text.push_str(&referred(&name)?),
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        if open.len() > 1 {
            return Err("it ends within an element".into());
        }
        open.pop().and_then(|document| document.children.into_iter().next()).ok_or_else(|| "it is empty".into())
    }
}

fn element(start: &BytesStart<'_>) -> Result<Node, String> {
    let mut node = Node::new(start.name().as_ref());
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value =
            attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        node = node.with(attribute.key.as_ref(), value);
    }
    Ok(node)
}

/// What `&name;` stands for.
fn referred(name: &quick_xml::events::BytesRef<'_>) -> Result<String, String> {
    if let Some(character) = name.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(character.to_string());
    }
    let known = quick_xml::escape::resolve_predefined_entity(name);
    known.map(str::to_owned).ok_or_else(|| format!("it refers to an entity &{};", &**name))
}

fn unreadable(what: &str, why: impl ToString) -> LibvirtError {
    LibvirtError::Description { what: what.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_whatever_is_in_it() {
        let hostile = "</name><emulator>/bin/sh</emulator>&amp;\"' <!--";
        let node = Node::new("domain")
            .with("type", hostile)
            .child(Node::new("name").text(hostile))
            .child(Node::new("devices").child(Node::new("disk").with("n", 1)).child(Node::new("disk").with("n", 2)));
        let text = node.write().unwrap();
        let read = Node::parse(&text).unwrap();
        assert_eq!(read, node);
        assert_eq!(read.find("name").unwrap().text, hostile);
        assert_eq!(read.find("devices").unwrap().all("disk").count(), 2);
        assert_eq!(read.find("devices/disk").and_then(|disk| disk.attribute("n")), Some("1"));
        assert_eq!(read.find("emulator"), None);
    }

    #[test]
    fn what_is_no_description_is_refused() {
        for bad in ["", "<a><b></a>", "<a>", "</a>", "text", "<a>&unknown;</a>", &"<a>".repeat(1000)] {
            assert!(Node::parse(bad).is_err(), "{bad}");
        }
        let note = Node::parse("<?xml version='1.0'?><!-- c --><a b='&lt;1'> x &amp; <![CDATA[<y>]]></a>").unwrap();
        assert_eq!((note.attribute("b"), note.text.as_str()), (Some("<1"), "x & <y>"));
    }
}
