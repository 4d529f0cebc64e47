//! What guests are started from that are not made from nothing: a pool of guests that stand still, and a snapshot of one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tare_lab::{Ledger, Resource, make_disk_directory};
use tare_model::ByteSize;
use tare_model::token::Token;
use tare_platform::{Guest, Site};
use tare_wire::{Link, Reply, Request};

use super::provision::random_token;
use super::recipe::Recipe;
use crate::neighbours;
use crate::time_limits::TIMEOUT;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Guests that were made, have answered, and stand still until one of them is taken.
pub(super) struct Pool {
    size: u32,
    ready: Mutex<Vec<Box<dyn Guest>>>,
    /// Guests that were taken and are not gone yet.
    taken: Arc<AtomicU32>,
    /// Held by who fills it; guests that were made for it, and what that took, seconds.
    filled: Mutex<(u32, f64)>,
}

/// A guest's place in its pool, which is to be filled again once the guest is gone.
pub(super) struct Place(Arc<AtomicU32>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    pub(super) fn of(size: u32) -> Self {
        Self { size, ready: Mutex::default(), taken: Arc::default(), filled: Mutex::default() }
    }

    /// Makes guests until as many stand ready, or are taken, as the pool has.
    ///
    /// # Errors
    /// Why one could not be made or stopped.
    pub(super) fn fill(&self, recipe: &Recipe<'_>) -> Result<(), String> {
        let mut filled = lock(&self.filled);
        while lock(&self.ready).len() + (self.taken.load(Ordering::Relaxed) as usize) < self.size as usize {
            recipe.goes_on()?;
            let began = Instant::now();
            let guest = recipe.make()?;
            guest.pause().map_err(words)?;
            lock(&self.ready).push(guest);
            *filled = (filled.0 + 1, filled.1 + began.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Takes the guest that has stood longest.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn take(&self) -> Result<(Box<dyn Guest>, Place), String> {
        let mut ready = lock(&self.ready);
        if ready.is_empty() {
            return Err("the pool is empty: all of its guests are taken".to_owned());
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok((ready.remove(0), Place(Arc::clone(&self.taken))))
    }

    pub(super) fn fact(&self) -> (String, String) {
        let (made, seconds) = *lock(&self.filled);
        let each = seconds * 1e3 / f64::from(made.max(1));
        let said = format!(
            "{} guests; {made} were made and stopped for it outside of what is measured, {each:.1} ms each, mean",
            self.size
        );
        ("pool".to_owned(), said)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut ready = std::mem::take(&mut *lock(&self.ready));
        // What does not go is on the ledger.
        let _ = neighbours::destroy(&mut ready);
    }
}

/// Lets a guest of a pool run again; the seconds until its agent answered.
///
/// # Errors
/// When it cannot be let run, or does not answer.
pub(super) fn wake(guest: &dyn Guest, site: &Site<'_>) -> Result<f64, String> {
    let began = Instant::now();
    guest.resume().map_err(words)?;
    guest.link().call(Request::Clock, site.timeout).map_err(|error| format!("it does not answer again: {error}"))?;
    Ok(began.elapsed().as_secs_f64())
}

/// A snapshot of a guest, taken once.
#[derive(Default)]
pub(super) struct Snapshot(OnceLock<Taken>);

/// A snapshot that was taken.
struct Taken {
    directory: Directory,
    /// What the guest held in its memory alone.
    secret: Token,
    bytes: ByteSize,
    seconds: f64,
}

impl Snapshot {
    /// Takes it, unless it was taken: makes a guest, gives its agent a secret to keep in memory, and writes the guest down.
    ///
    /// # Errors
    /// Why there is no such guest, or no snapshot of it.
    pub(super) fn take(&self, recipe: &Recipe<'_>) -> Result<(), String> {
        if self.0.get().is_some() {
            return Ok(());
        }
        recipe.goes_on()?;
        let directory = Directory::make(recipe)?;
        let mut guest = recipe.make()?;
        let secret = random_token()?;
        let kept = guest.link().call(Request::Keep { secret }, TIMEOUT);
        kept.map_err(|error| format!("the guest of the snapshot took no secret: {error}"))?;
        let began = Instant::now();
        guest.snapshot(&directory.path).map_err(words)?;
        let seconds = began.elapsed().as_secs_f64();
        guest.destroy().map_err(words)?;
        let bytes = directory.bytes().map_err(|error| format!("read the snapshot: {error}"))?;
        // Two who take it at one time would be a defect; the first holds.
        let _ = self.0.set(Taken { directory, secret, bytes, seconds });
        Ok(())
    }

    /// Restores a guest of it, which must know the secret.
    ///
    /// # Errors
    /// Why there is no guest, or that it is none of the snapshot's.
    pub(super) fn restore(&self, recipe: &Recipe<'_>) -> Result<Box<dyn Guest>, String> {
        let taken = self.0.get().ok_or("no snapshot was taken before the first start: a defect of tare")?;
        let guest = recipe.restore(&taken.directory.path)?;
        prove(guest.link(), taken.secret)?;
        Ok(guest)
    }

    pub(super) fn fact(&self) -> Option<(String, String)> {
        let Taken { bytes, seconds, .. } = self.0.get()?;
        let said = format!(
            "{bytes}, taken in {:.1} ms; every guest that counts as started knew the secret that only the first guest's memory held",
            seconds * 1e3
        );
        Some(("snapshot".to_owned(), said))
    }
}

/// Whether an agent is one that was given the secret before the snapshot was taken.
///
/// # Errors
/// When it is not, or does not say.
fn prove(link: &Link, secret: Token) -> Result<(), String> {
    match link.call(Request::Kept, TIMEOUT) {
        Ok(Reply::Keeps { secret: Some(said) }) if said == secret => Ok(()),
        Ok(Reply::Keeps { secret: said }) => {
            let what = if said.is_some() { "another secret than the snapshot's" } else { "no secret" };
            Err(format!("the guest was not restored: its memory holds {what}"))
        }
        Ok(_) => Err("the restored guest answered something else than was asked".to_owned()),
        Err(error) => Err(format!("the restored guest does not tell its secret: {error}")),
    }
}

/// A directory on disk that goes with this, or with the run.
struct Directory {
    path: PathBuf,
    ledger: Arc<dyn Ledger>,
    number: u64,
}

impl Directory {
    fn make(recipe: &Recipe<'_>) -> Result<Self, String> {
        let run = make_disk_directory(recipe.site.run_id).map_err(words)?;
        let path = run.join(format!("snapshot-{}", recipe.stem()));
        let ledger = Arc::clone(recipe.site.ledger);
        let number = ledger.planned(&Resource::Directory { path: path.clone() }).map_err(words)?;
        let made = std::fs::create_dir(&path);
        made.map_err(|error| format!("could not make the directory {}: {error}", path.display()))?;
        Ok(Self { path, ledger, number })
    }

    /// Bytes of the files in it.
    fn bytes(&self) -> std::io::Result<ByteSize> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(&self.path)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(ByteSize(bytes))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is not gone stays on the list of what must be taken away.
        if std::fs::remove_dir_all(&self.path).is_ok() {
            let _ = self.ledger.released(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tare_wire::{FromAgent, ToAgent, read_frame, write_frame};

    /// A link to an agent of a few lines that keeps this.
    fn keeping(secret: Option<Token>) -> Link {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            while let Ok(Some(ToAgent { id, request })) = read_frame::<ToAgent>(&mut theirs) {
                let reply = match request {
                    Request::Hello { .. } => Reply::Hello { version: "0".into(), pid: 1, kernel_age_ns: 0 },
                    Request::Kept => Reply::Keeps { secret },
                    _ => Reply::Done,
                };
                write_frame(&mut theirs, &FromAgent { id, result: Ok(reply) }).unwrap();
            }
        });
        let limit = Duration::from_secs(10);
        Link::take_up(Box::new(ours.try_clone().unwrap()), Box::new(ours), limit, limit).unwrap()
    }

    #[test]
    fn only_who_knows_the_secret_was_restored() {
        let secret = Token::new([7; Token::LEN]);
        assert_eq!(prove(&keeping(Some(secret)), secret), Ok(()));
        let mut bits = *secret.bits();
        bits[Token::LEN - 1] ^= 1;
        let another = prove(&keeping(Some(Token::new(bits))), secret).unwrap_err();
        assert!(another.contains("was not restored") && another.contains("another secret"), "{another}");
        let none = prove(&keeping(None), secret).unwrap_err();
        assert!(none.contains("was not restored") && none.contains("no secret"), "{none}");
    }

    #[test]
    fn a_place_in_a_pool_is_free_again_once_its_guest_is_gone() {
        let pool = Pool::of(2);
        let why = pool.take().err().unwrap();
        assert!(why.contains("the pool is empty"), "{why}");
        pool.taken.fetch_add(1, Ordering::Relaxed);
        drop(Place(Arc::clone(&pool.taken)));
        assert_eq!(pool.taken.load(Ordering::Relaxed), 0);
        assert!(pool.fact().1.starts_with("2 guests; 0 were made"), "{:?}", pool.fact());
    }
}
