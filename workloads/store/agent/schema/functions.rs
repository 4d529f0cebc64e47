//! The same steps as functions in the database, one round trip each: the level `functions`; and the reorder trigger.
//!
//! | call | rows |
//! |---|---|
//! | [`CALL_LOGIN`] | (`customer_id`, `title`, `actor`, `linked_title`): none, no such customer; one with titles NULL, no purchase before |
//! | [`CALL_NEW_CUSTOMER`] | one (`store_new_customer`): the customer, 0 where the user name is taken |
//! | [`CALL_BROWSE_BY_CATEGORY`], [`CALL_BROWSE_BY_ACTOR`], [`CALL_BROWSE_BY_TITLE`] | as of the statements of these names |
//! | [`CALL_PURCHASE`] | one (`order_id`): the order, 0 where stock was short and all was rolled back |

/// `$1` user name, `$2` password.
pub const CALL_LOGIN: &str = "SELECT customer_id, title, actor, linked_title FROM store_login($1, $2)";

/// Parameters as of [`super::statements::NEW_CUSTOMER`].
pub const CALL_NEW_CUSTOMER: &str =
    "SELECT store_new_customer($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";

/// `$1` category, `$2` most rows.
pub const CALL_BROWSE_BY_CATEGORY: &str =
    "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM store_browse_by_category($1, $2)";

/// `$1` words of the name, `$2` most rows.
pub const CALL_BROWSE_BY_ACTOR: &str =
    "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM store_browse_by_actor($1, $2)";

/// `$1` words of the title, `$2` most rows.
pub const CALL_BROWSE_BY_TITLE: &str =
    "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM store_browse_by_title($1, $2)";

/// `$1` customer, `$2` products (`integer[]`), `$3` quantities (`integer[]`), `$4` net amount, `$5` tax, `$6` total amount.
///
/// A procedure, which ends its transaction itself: short stock is a real rollback, without an error that the server would log
/// and without a subtransaction for every order. So it must not be called inside a transaction block; committed is
/// what came back before the server says that it is ready.
pub const CALL_PURCHASE: &str = "CALL store_purchase($1, $2, $3, $4, $5, $6, 0)";

/// Statements that make the functions and the trigger.
pub const CREATE: [&str; 8] =
    [LOGIN, NEW_CUSTOMER, BROWSE_BY_CATEGORY, BROWSE_BY_ACTOR, BROWSE_BY_TITLE, PURCHASE, REORDER, REORDER_TRIGGER];

const LOGIN: &str = "
CREATE OR REPLACE FUNCTION store_login(name text, secret text)
RETURNS TABLE (customer_id integer, title text, actor text, linked_title text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    customer integer;
BEGIN
    SELECT c.customer_id INTO customer FROM customers c WHERE c.username = name AND c.password = secret;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT customer, p.title, p.actor, linked.title FROM cust_hist h
        JOIN products p ON p.prod_id = h.prod_id LEFT JOIN products linked ON linked.prod_id = p.common_prod_id
        WHERE h.customer_id = customer ORDER BY h.order_id DESC, p.title LIMIT 10;
    IF NOT FOUND THEN
        RETURN QUERY SELECT customer, NULL::text, NULL::text, NULL::text;
    END IF;
END $$";

const NEW_CUSTOMER: &str = "
CREATE OR REPLACE FUNCTION store_new_customer(first_name text, last_name text, address1 text, address2 text, city text, state text,
    zip integer, country text, region integer, email text, phone text, card_type integer, card_number text, card_expires text,
    username text, password text, age integer, income integer, gender text)
RETURNS integer LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    customer integer;
BEGIN
    INSERT INTO customers (first_name, last_name, address1, address2, city, state, zip, country, region, email, phone, card_type,
        card_number, card_expires, username, password, age, income, gender)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    ON CONFLICT (username) DO NOTHING RETURNING customer_id INTO customer;
    RETURN coalesce(customer, 0);
END $$";

macro_rules! browse {
    ($name:literal, $parameter:literal, $condition:literal) => {
        concat!(
            "
CREATE OR REPLACE FUNCTION ",
            $name,
            "(",
            $parameter,
            ", batch integer)
RETURNS TABLE (prod_id integer, category integer, title text, actor text, price numeric, special integer, common_prod_id integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT p.prod_id, p.category, p.title, p.actor, p.price, p.special, p.common_prod_id FROM products p
        WHERE ",
            $condition,
            " LIMIT batch;
END $$"
        )
    };
}

const BROWSE_BY_CATEGORY: &str =
    browse!("store_browse_by_category", "wanted integer", "p.category = wanted AND p.special = 1");

const BROWSE_BY_ACTOR: &str = browse!(
    "store_browse_by_actor",
    "wanted text",
    "to_tsvector('simple', p.actor) @@ plainto_tsquery('simple', wanted)"
);

const BROWSE_BY_TITLE: &str = browse!(
    "store_browse_by_title",
    "wanted text",
    "to_tsvector('simple', p.title) @@ plainto_tsquery('simple', wanted)"
);

// Locks the rows of the inventory in the order of the cart: see `statements`.
const PURCHASE: &str = "
CREATE OR REPLACE PROCEDURE store_purchase(customer integer, products integer[], quantities integer[], net numeric, tax numeric,
    total numeric, INOUT order_id integer) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    item integer;
BEGIN
    INSERT INTO orders AS o (order_date, customer_id, net_amount, tax, total_amount)
        VALUES (current_date, customer, net, tax, total) RETURNING o.order_id INTO order_id;
    FOR item IN 1 .. cardinality(products) LOOP
        UPDATE inventory SET quan_in_stock = quan_in_stock - quantities[item], sales = sales + quantities[item]
            WHERE prod_id = products[item] AND quan_in_stock >= quantities[item];
        IF NOT FOUND THEN
            ROLLBACK;
            order_id := 0;
            RETURN;
        END IF;
        INSERT INTO orderlines (order_id, line, prod_id, quantity, order_date)
            VALUES (order_id, item, products[item], quantities[item], current_date);
        INSERT INTO cust_hist (customer_id, order_id, prod_id) VALUES (customer, order_id, products[item]);
    END LOOP;
END $$";

// After the update and not before: a trigger before it would lock the row once more for every update, and write that
// to the log; of one after it only the condition is looked at. 3, 250, 2,500: LOW_STOCK and FULL_STOCK.
const REORDER: &str = "
CREATE OR REPLACE FUNCTION store_reorder() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    full_stock integer := CASE WHEN NEW.prod_id % 10000 = 0 THEN 2500 ELSE 250 END;
BEGIN
    INSERT INTO reorder (prod_id, date_low, quan_low, date_reordered, quan_reordered, date_expected)
        VALUES (NEW.prod_id, current_date, NEW.quan_in_stock, current_date, full_stock - NEW.quan_in_stock, current_date + 7);
    UPDATE inventory SET quan_in_stock = full_stock WHERE prod_id = NEW.prod_id;
    RETURN NULL;
END $$";

const REORDER_TRIGGER: &str = "
CREATE TRIGGER store_reorder AFTER UPDATE ON inventory FOR EACH ROW WHEN (NEW.quan_in_stock < 3)
EXECUTE FUNCTION store_reorder()";
