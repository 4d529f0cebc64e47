//! Study file to Study (valid by type) to Plan (expanded, ordered, costed, hashed).
