//! What an order asks of the server, statement by statement: the level `prepared`.
//!
//! Types of the parameters are those of the columns: `integer` for every number, `text` for every word, `numeric` for an
//! amount, `integer` for a limit. The comment on each constant says what comes back.
//!
//! # Where purchases meet
//! A purchase is one transaction: [`INSERT_ORDER`], then for each item of the cart, *in the order of the cart*,
//! [`TAKE_STOCK`], [`INSERT_LINE`] and [`INSERT_HISTORY`], then commit. [`TAKE_STOCK`] locks the product's row of the inventory until the
//! transaction ends. As in the published store the cart is not sorted, so two purchases that hold two products in opposite
//! order wait for each other: the server finds the deadlock, ends one of them with SQLSTATE 40P01, and the client tries
//! that one again. Sorted carts would have no deadlocks, and would not be the published load. Hot products, which are in ten times as many
//! carts, are where it happens.

/// Most previous purchases that a login shows.
pub const PREVIOUS_MAX: u32 = 10;

/// Logs a customer in. `$1` user name, `$2` password. One row (`customer_id`), or none: no such customer.
pub const LOGIN: &str = "SELECT customer_id FROM customers WHERE username = $1 AND password = $2";

/// A customer's latest purchases, at most [`PREVIOUS_MAX`], and the title that each is linked with. `$1` customer. Rows (`title`, `actor`,
/// `linked_title`).
pub const PREVIOUS: &str = "SELECT p.title, p.actor, linked.title AS linked_title FROM cust_hist h \
     JOIN products p ON p.prod_id = h.prod_id LEFT JOIN products linked ON linked.prod_id = p.common_prod_id \
     WHERE h.customer_id = $1 ORDER BY h.order_id DESC, p.title LIMIT 10";

/// A new customer. One row (`customer_id`), or none: the user name is taken. It is no error then, so that names that are tried
/// in vain fill no log.
///
/// `$1` first name, `$2` last name, `$3` and `$4` address, `$5` city, `$6` state, `$7` zip (integer), `$8` country, `$9` region (integer), `$10` e-mail,
/// `$11` phone, `$12` card type (integer), `$13` card number, `$14` card expiry, `$15` user name, `$16` password, `$17` age
/// (integer), `$18` income (integer), `$19` gender.
pub const NEW_CUSTOMER: &str = "INSERT INTO customers (first_name, last_name, address1, address2, city, state, zip, country, region, email, phone, card_type, \
     card_number, card_expires, username, password, age, income, gender) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
     ON CONFLICT (username) DO NOTHING RETURNING customer_id";

/// What is on offer in a category. `$1` category, `$2` most rows (integer). Rows (`prod_id`, `category`, `title`, `actor`, `price`,
/// `special`, `common_prod_id`).
pub const BROWSE_BY_CATEGORY: &str = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
     WHERE category = $1 AND special = 1 LIMIT $2::integer";

/// Products of an actor. `$1` words of the name, all of which must be there, `$2` most rows (integer). Rows as of
/// [`BROWSE_BY_CATEGORY`].
pub const BROWSE_BY_ACTOR: &str = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
     WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) LIMIT $2::integer";

/// Products by words of the title. `$1` words, all of which must be there, `$2` most rows (integer). Rows as of
/// [`BROWSE_BY_CATEGORY`].
///
/// The published store looked among the actors here on PostgreSQL; this one looks among the titles (a deviation).
pub const BROWSE_BY_TITLE: &str = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
     WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) LIMIT $2::integer";

/// The price of a product. `$1` product. One row (`price`).
pub const READ_PRICE: &str = "SELECT price FROM products WHERE prod_id = $1";

/// A new order. `$1` customer, `$2` net amount, `$3` tax, `$4` total amount. One row (`order_id`).
pub const INSERT_ORDER: &str = "INSERT INTO orders (order_date, customer_id, net_amount, tax, total_amount) \
     VALUES (current_date, $1, $2, $3, $4) RETURNING order_id";

/// Takes from stock what is there to be taken. `$1` product, `$2` quantity. `UPDATE 1`, or `UPDATE 0`: stock is short, and the
/// order is to be rolled back.
///
/// Check and decrement in one statement: between the two nobody else gets in. It locks the product's row until
/// the transaction ends.
pub const TAKE_STOCK: &str = "UPDATE inventory SET quan_in_stock = quan_in_stock - $2, sales = sales + $2 \
     WHERE prod_id = $1 AND quan_in_stock >= $2";

/// A line of an order. `$1` order, `$2` line from 1, `$3` product, `$4` quantity. `INSERT 0 1`.
pub const INSERT_LINE: &str = "INSERT INTO orderlines (order_id, line, prod_id, quantity, order_date) \
     VALUES ($1, $2, $3, $4, current_date)";

/// A purchase in a customer's history. `$1` customer, `$2` order, `$3` product. `INSERT 0 1`.
pub const INSERT_HISTORY: &str = "INSERT INTO cust_hist (customer_id, order_id, prod_id) VALUES ($1, $2, $3)";
