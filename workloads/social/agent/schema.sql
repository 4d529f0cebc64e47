-- Tables of the social application, made before rows are loaded. Names and meaning are the published benchmark's; types are PostgreSQL's.
CREATE TABLE address (
    addressid integer NOT NULL, street1 varchar(55) NOT NULL, street2 varchar(55) NOT NULL, city varchar(55) NOT NULL,
    state varchar(25) NOT NULL, zip varchar(12) NOT NULL, country varchar(55) NOT NULL,
    latitude double precision NOT NULL, longitude double precision NOT NULL);
CREATE TABLE person (
    userid integer NOT NULL, username varchar(60) NOT NULL, password varchar(60) NOT NULL, firstname varchar(60) NOT NULL,
    lastname varchar(60) NOT NULL, email varchar(90) NOT NULL, telephone varchar(25) NOT NULL, timezone varchar(25) NOT NULL,
    summary varchar(2500) NOT NULL, imageurl varchar(100) NOT NULL, imagethumburl varchar(100) NOT NULL, addressid integer NOT NULL);
CREATE TABLE socialevent (
    socialeventid integer NOT NULL, title varchar(100) NOT NULL, summary varchar(100) NOT NULL, description varchar(500) NOT NULL,
    submitterusername varchar(60) NOT NULL, addressid integer NOT NULL, telephone varchar(25) NOT NULL, timezone varchar(25) NOT NULL,
    eventtimestamp timestamp NOT NULL, createdtimestamp timestamp NOT NULL, imageurl varchar(100) NOT NULL,
    imagethumburl varchar(100) NOT NULL, literatureurl varchar(100) NOT NULL, totalscore integer NOT NULL,
    numberofvotes integer NOT NULL, disabled smallint NOT NULL);
CREATE TABLE comments_rating (
    commentid integer NOT NULL, username varchar(60) NOT NULL, socialeventid integer NOT NULL, comments varchar(1000) NOT NULL,
    creationtime timestamp NOT NULL, updatedtime timestamp NOT NULL, rating smallint NOT NULL);
CREATE TABLE id_gen (gen_key varchar(20) NOT NULL, gen_value integer NOT NULL);
CREATE TABLE invitation (
    invitationid integer NOT NULL, requestorusername varchar(60) NOT NULL, candidateusername varchar(60) NOT NULL,
    isaccepted smallint NOT NULL);
CREATE TABLE person_person (person_username varchar(60) NOT NULL, friend_username varchar(60) NOT NULL);
CREATE TABLE person_socialevent (username varchar(60) NOT NULL, socialeventid integer NOT NULL);
CREATE TABLE socialeventtag (socialeventtagid integer NOT NULL, tag varchar(30) NOT NULL, refcount integer NOT NULL);
CREATE TABLE socialeventtag_socialevent (socialeventtagid integer NOT NULL, socialeventid integer NOT NULL);
