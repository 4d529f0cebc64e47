//! One operation from its first request to its last answer: what is asked for next, and whether what came was right.

use crate::social::contents::{SITE_FILES, event_title, stored_file_id, tag_name, user_name};
use crate::social::spec::{Operation, Scale, StoredFile};

use super::file::Coming;
use super::form::{self, To};
use super::member::Member;
use super::outgoing::Outgoing;
use super::page::{Page, decimal};
use super::world::World;
use crate::session::fault::Fault;
use crate::session::http::Head;

/// Pictures that a home page has, and that a page of a tag has at most.
const LISTED: u32 = 10;
/// Longest text that is no page, bytes.
const TEXT_MAX: usize = 1024;

/// What was asked for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Logout,
    Login,
    Page,
    /// Which, and whether only for a change.
    Static(u8, bool),
    Picture(StoredFile, u32),
    Attend,
    /// Whether a name is free.
    Name,
    Person,
    Event,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Leave,
    Enter,
    Page,
    Site(u8),
    Own(u8),
    Picture(u16),
    After,
    Post,
    Over,
}

/// What became of what the operation was to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    /// It has not asked for it.
    Nothing,
    /// It was asked for, and nothing is known yet.
    Asked,
    Refused,
    Acknowledged,
}

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Visit {
    pub operation: Operation,
    pub posted: Posted,
    /// Pictures that have come, and their bytes.
    pub loaded: u32,
    pub picture_bytes: u64,
    stage: Stage,
    pub(super) asked: Asked,
    pub(super) page: Page,
    coming: Coming,
    text: Vec<u8>,
    /// The tag, event or person that is looked at; who logs in.
    pub(super) target: u32,
    /// It is what the operation before has uploaded.
    fresh: bool,
    /// What a redirection named.
    pub(super) place: u32,
    not_modified: bool,
}

impl Default for Visit {
    fn default() -> Self {
        Self {
            operation: Operation::Home,
            posted: Posted::Nothing,
            loaded: 0,
            picture_bytes: 0,
            stage: Stage::Over,
            asked: Asked::Page,
            page: Page::default(),
            coming: Coming::new(0, Some(0)),
            text: Vec::new(),
            target: 0,
            fresh: false,
            place: 0,
            not_modified: false,
        }
    }
}

const STATUS: fn(u16) -> Fault = Fault::Status;

impl Visit {
    /// Begins an operation, and draws what it is about.
    pub fn begin(&mut self, world: &World, member: &mut Member, operation: Operation) {
        let fresh = std::mem::take(&mut member.fresh);
        self.operation = operation;
        self.stage = Stage::Leave;
        self.posted = Posted::Nothing;
        (self.loaded, self.picture_bytes, self.place) = (0, 0, 0);
        self.page.clear();
        self.fresh = false;
        self.target = match operation {
            Operation::TagSearch => 1 + member.dice.below(world.scale.tags.max(1)),
            Operation::EventDetail | Operation::PersonDetail if fresh > 0 => {
                self.fresh = true;
                fresh
            }
            Operation::EventDetail => member.some_event(world),
            Operation::PersonDetail => member.some_person(world),
            Operation::Login => member.someone(world),
            Operation::AddPerson | Operation::AddEvent => {
                member.uploaded += 1;
                0
            }
            Operation::Home => 0,
        };
    }

    /// Writes the next request; false: the operation has ended.
    pub fn ask(&mut self, world: &World, member: &mut Member, cookie: &[u8], out: &mut Outgoing) -> bool {
        let Some(asked) = self.next(world, member) else { return false };
        self.asked = asked;
        self.not_modified = false;
        out.clear();
        let host = world.instances.get(usize::from(member.instance)).map_or("", |instance| &instance.host);
        let to = To { host, cookie };
        match asked {
            Asked::Logout => form::get(out, to, "/logout", false),
            Asked::Login => {
                let body = format!("user={}&password={}", user_name(self.target.into()), self.target);
                form::say(out, to, "/login", &body);
            }
            Asked::Page => {
                self.page.clear();
                form::get(out, to, &self.path(), false);
            }
            Asked::Static(n, unchanged) => {
                let file = &world.statics[usize::from(n)];
                self.coming = Coming::new(file.bytes, Some(file.id));
                form::get(out, to, &file.path, unchanged);
            }
            Asked::Picture(kind, id) => {
                self.coming = Coming::new(kind.bytes(), self.marker(world, member, kind, id));
                form::get(out, to, &format!("/image{}", kind.path(id.into())), false);
            }
            Asked::Attend => form::say(out, to, "/event/attend", &format!("id={}", self.target)),
            Asked::Name => {
                form::get(out, to, &format!("/person/check?user={}", form::new_user(world, member)), false);
            }
            Asked::Person => form::person(out, to, world, member),
            Asked::Event => form::event(out, to, world, member),
        }
        self.text.clear();
        if self.adds() {
            self.posted = Posted::Asked;
        }
        true
    }

    /// Decides what is asked for next.
    pub(super) fn next(&mut self, world: &World, member: &mut Member) -> Option<Asked> {
        use Operation::{AddPerson, Login};
        loop {
            let stage = self.stage;
            match stage {
                Stage::Leave => {
                    self.stage = Stage::Enter;
                    if matches!(self.operation, Login | AddPerson) && member.login > 0 {
                        return Some(Asked::Logout);
                    }
                }
                Stage::Enter => {
                    self.stage = Stage::Page;
                    if self.operation == Login {
                        return Some(Asked::Login);
                    }
                }
                Stage::Page => {
                    self.stage = Stage::Site(0);
                    return Some(Asked::Page);
                }
                Stage::Site(n) if u32::from(n) < SITE_FILES => {
                    self.stage = Stage::Site(n + 1);
                    if let Some(unchanged) = member.wants_static(n) {
                        return Some(Asked::Static(n, unchanged));
                    }
                }
                Stage::Site(_) => self.stage = Stage::Own(0),
                Stage::Own(n) => {
                    let own = world.own(self.operation);
                    self.stage = if own.start + n < own.end { Stage::Own(n + 1) } else { Stage::Picture(0) };
                    if own.start + n < own.end
                        && let Some(unchanged) = member.wants_static(own.start + n)
                    {
                        return Some(Asked::Static(own.start + n, unchanged));
                    }
                }
                Stage::Picture(n) => match self.page.pictures.get(usize::from(n)).filter(|_| self.operation != Login) {
                    Some(&(kind, id)) => {
                        self.stage = Stage::Picture(n + 1);
                        if member.wants_picture(kind, id) {
                            return Some(Asked::Picture(kind, id));
                        }
                    }
                    None => self.stage = Stage::After,
                },
                Stage::After | Stage::Post => return self.after(world, member),
                Stage::Over => return None,
            }
        }
    }

    /// What is asked for once the page is there with all that belongs to it.
    fn after(&mut self, world: &World, member: &mut Member) -> Option<Asked> {
        let posts = self.stage == Stage::Post;
        self.stage = Stage::Over;
        match self.operation {
            Operation::EventDetail if self.could_attend() => member.dice.happens(world.attend).then_some(Asked::Attend),
            Operation::AddEvent => Some(Asked::Event),
            Operation::AddPerson if posts => Some(Asked::Person),
            Operation::AddPerson => {
                self.stage = Stage::Post;
                Some(Asked::Name)
            }
            _ => None,
        }
    }

    fn path(&self) -> String {
        match self.operation {
            Operation::Home | Operation::Login => "/".to_owned(),
            Operation::TagSearch => format!("/tag?name={}", tag_name(self.target.into())),
            Operation::EventDetail => format!("/event?id={}", self.target),
            Operation::PersonDetail => format!("/person?id={}", self.target),
            Operation::AddPerson => "/person/new".to_owned(),
            Operation::AddEvent => "/event/new".to_owned(),
        }
    }

    /// What the markers of a picture must be made with; `None`: somebody else has uploaded it.
    fn marker(&self, world: &World, member: &Member, kind: StoredFile, id: u32) -> Option<u64> {
        let of_event = is_event(kind);
        if id <= if of_event { world.scale.events } else { world.scale.people } {
            return Some(stored_file_id(u32::from(member.instance) + 1, kind, id.into()));
        }
        let own = self.fresh && id == self.target && of_event == (self.operation == Operation::EventDetail);
        own.then(|| form::new_file(world, member, kind))
    }

    /// Judges the head of an answer.
    ///
    /// # Errors
    /// `status ...`; `login`: it was refused; `place`: a redirection names nothing new.
    pub fn head(&mut self, head: &Head) -> Result<(), Fault> {
        if self.adds() && (400..500).contains(&head.status) {
            self.posted = Posted::Refused;
        }
        match (self.asked, head.status) {
            (Asked::Logout | Asked::Login, 302) => Ok(()),
            (Asked::Login, 200) => Err(Fault::Kind("login")),
            (Asked::Person | Asked::Event, 302) => {
                let page = if self.asked == Asked::Person { "/person?id=" } else { "/event?id=" };
                let place = head.location.as_deref().and_then(|place| place_of(place, page));
                self.place = place.ok_or(Fault::Kind("place"))?;
                Ok(())
            }
            (Asked::Static(_, true), 304) => {
                self.not_modified = true;
                Ok(())
            }
            (Asked::Page | Asked::Static(..) | Asked::Picture(..) | Asked::Attend | Asked::Name, 200) => Ok(()),
            (_, status) => Err(STATUS(status)),
        }
    }

    /// Judges the next bytes of a body, in any pieces.
    ///
    /// # Errors
    /// `marker`, `length`: a file is another one or too long.
    pub fn feed(&mut self, world: &World, member: &mut Member, piece: &[u8]) -> Result<(), Fault> {
        match self.asked {
            Asked::Page => self.page.feed(piece, &mut member.dice),
            Asked::Static(..) if world.check => return self.coming.feed(piece),
            Asked::Picture(..) => {
                self.picture_bytes += piece.len() as u64;
                if world.check {
                    return self.coming.feed(piece);
                }
            }
            Asked::Attend | Asked::Name => {
                let room = TEXT_MAX.saturating_sub(self.text.len());
                self.text.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            _ => {}
        }
        Ok(())
    }

    /// Judges an answer that has come in full; the user goes on from it.
    ///
    /// # Errors
    /// What [`Page::judge`] says; `heading`, `picture`, `hits`, `attend`, `name`, `length`.
    pub fn finish(&mut self, world: &World, member: &mut Member) -> Result<(), Fault> {
        if world.check {
            self.judge(world, member)?;
        }
        self.settle(world, member);
        Ok(())
    }

    fn judge(&self, world: &World, member: &Member) -> Result<(), Fault> {
        match self.asked {
            Asked::Page => {
                let user = if member.login > 0 { world.name(member.login) } else { "-".to_owned() };
                self.page.judge(&user)?;
                self.heading(world, member)?;
                self.lists(member)
            }
            Asked::Static(..) if self.not_modified => Ok(()),
            Asked::Static(..) | Asked::Picture(..) => self.coming.finish(),
            Asked::Attend => self.attends(world, member).ok_or(Fault::Kind("attend")),
            Asked::Name if self.text.trim_ascii() == b"free" => Ok(()),
            Asked::Name => Err(Fault::Kind("name")),
            Asked::Logout | Asked::Login | Asked::Person | Asked::Event => Ok(()),
        }
    }

    fn heading(&self, world: &World, member: &Member) -> Result<(), Fault> {
        let Scale { people, events, .. } = world.scale;
        let (whole, expected) = match self.operation {
            Operation::Home | Operation::Login => (true, "Upcoming events".to_owned()),
            Operation::TagSearch => (true, tag_name(self.target.into())),
            Operation::EventDetail if self.target <= events => (true, event_title(world.seed, self.target.into())),
            Operation::EventDetail if self.fresh => (true, form::new_title(world, member)),
            Operation::EventDetail => (false, "New event ".to_owned()),
            Operation::PersonDetail if self.target <= people => (true, world.name(self.target)),
            Operation::PersonDetail if self.fresh => (true, form::new_name(world, member)),
            Operation::PersonDetail => (false, "New ".to_owned()),
            Operation::AddPerson => (true, "New person".to_owned()),
            Operation::AddEvent => (true, "New event".to_owned()),
        };
        let heading = self.page.heading.as_slice();
        let right = if whole { heading == expected.as_bytes() } else { heading.starts_with(expected.as_bytes()) };
        if right { Ok(()) } else { Err(Fault::Kind("heading")) }
    }

    /// Judges what the page is for.
    fn lists(&self, member: &Member) -> Result<(), Fault> {
        let page = &self.page;
        let has = |kind| page.pictures.contains(&(kind, self.target));
        let kind = match self.operation {
            Operation::Home | Operation::Login if page.references < LISTED => "picture",
            Operation::TagSearch => match page.hits.map(|hits| hits.min(LISTED)) {
                Some(hits) if u32::from(page.listed) != hits => "hits",
                Some(hits) if page.references != hits => "picture",
                None => "hits",
                Some(_) => return Ok(()),
            },
            Operation::EventDetail if !has(StoredFile::EventImage) => "picture",
            Operation::EventDetail if page.attendees.is_none() => "attendees",
            // Nobody can attend who is not logged in.
            Operation::EventDetail if page.attend.is_none_or(|yes| yes && member.login == 0) => "attend",
            Operation::PersonDetail if !has(StoredFile::PersonImage) => "picture",
            _ => return Ok(()),
        };
        Err(Fault::Kind(kind))
    }

    /// Whether the answer to "I attend" names the user, and one more than before.
    fn attends(&self, world: &World, member: &Member) -> Option<()> {
        let text = std::str::from_utf8(&self.text).ok()?.trim_ascii();
        let (count, rest) = text.strip_prefix("<p id=\"attendees\">")?.split_once("</p>")?;
        let link = format!("<a href=\"/person?id={}\">{}</a>", member.login, world.name(member.login));
        let more = decimal(count.as_bytes())? > self.page.attendees?;
        (more && rest.trim_ascii() == link).then_some(())
    }

    /// The user goes on from an answer that was right.
    pub(super) fn settle(&mut self, world: &World, member: &mut Member) {
        match self.asked {
            Asked::Logout => member.begin_session(world),
            Asked::Login => {
                // Somebody else, at another browser; also where nobody had to log out before.
                member.begin_session(world);
                member.login = self.target;
            }
            Asked::Page => {
                let page = &self.page;
                let lists = matches!(self.operation, Operation::Home | Operation::Login | Operation::TagSearch);
                if lists && page.listed > 0 {
                    (member.events, member.listed) = (page.events, page.listed);
                }
                if matches!(self.operation, Operation::EventDetail | Operation::PersonDetail) {
                    member.person = page.person;
                }
            }
            Asked::Picture(..) => self.loaded += 1,
            Asked::Person | Asked::Event => member.fresh = self.place,
            Asked::Static(..) | Asked::Attend | Asked::Name => {}
        }
        if self.adds() {
            self.posted = Posted::Acknowledged;
        }
    }

    /// What was asked for adds something.
    const fn adds(&self) -> bool {
        matches!(self.asked, Asked::Attend | Asked::Person | Asked::Event)
    }

    /// What was asked for may be asked for again without being done twice.
    pub const fn is_idempotent(&self) -> bool {
        !matches!(self.asked, Asked::Attend | Asked::Person | Asked::Event | Asked::Login)
    }

    /// What was asked for is to log in or out: where that has failed, it is open who is logged in.
    pub const fn changes_user(&self) -> bool {
        matches!(self.asked, Asked::Login | Asked::Logout)
    }

    /// What was asked for is to log out: the cookie is of no more use.
    pub fn leaves(&self) -> bool {
        self.asked == Asked::Logout
    }

    /// The answer was that a file has not changed.
    pub const fn is_not_modified(&self) -> bool {
        self.not_modified
    }

    /// Pictures that the page refers to.
    pub const fn references(&self) -> u32 {
        self.page.references
    }

    /// The page has said that the user can attend.
    pub fn could_attend(&self) -> bool {
        self.page.attend == Some(true)
    }

    /// Which part of an operation was asked for: the page, its static files, its pictures, or an upload.
    pub const fn part(&self) -> usize {
        match self.asked {
            Asked::Logout | Asked::Login | Asked::Page => 0,
            Asked::Static(..) => 1,
            Asked::Picture(..) => 2,
            Asked::Attend | Asked::Name | Asked::Person | Asked::Event => 3,
        }
    }
}

const fn is_event(kind: StoredFile) -> bool {
    !matches!(kind, StoredFile::PersonImage | StoredFile::PersonThumbnail)
}

/// The number that a redirection to a page of this beginning has, as a path or a whole address; never 0.
fn place_of(place: &[u8], page: &str) -> Option<u32> {
    let place = std::str::from_utf8(place).ok()?;
    let path = match place.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => place,
    };
    decimal(path.strip_prefix(page)?.as_bytes()).filter(|&id| id > 0)
}

#[cfg(test)]
mod tests;
