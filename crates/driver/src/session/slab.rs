//! Things by number: a number is given back when its thing is taken away, and given out again.

/// No thing has this number.
pub(crate) const NONE: u32 = u32::MAX;

/// Things of one kind.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// Room for this many before it grows.
    pub fn with_capacity(count: usize) -> Self {
        Self { places: Vec::with_capacity(count), free: Vec::new() }
    }

    /// Takes a thing in and says its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(thing);
            return number;
        }
        self.places.push(Some(thing));
        (self.places.len() - 1) as u32
    }

    /// The thing with this number, if there is one.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// The same, to look at.
    #[inline]
    pub fn peek(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    /// Takes it away.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(thing)
    }

    /// All that there are, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().enumerate().filter_map(|(number, thing)| Some((number as u32, thing.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_out_again_only_when_its_thing_is_gone() {
        let mut slab = Slab::with_capacity(2);
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((a, b), (0, 1));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!((slab.remove(a), slab.get(a)), (None, None));
        assert_eq!(slab.insert('c'), a);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(0, &'c'), (1, &'b')]);
        assert_eq!(slab.get(NONE), None);
    }
}
