//! The versioned messages between controller and agent, and the framed byte stream that carries them.
