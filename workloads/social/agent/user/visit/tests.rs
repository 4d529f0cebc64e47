use super::super::simulate::tests::drive;
use super::super::world::Instance;
use super::*;

fn world() -> World {
    World::of(&drive(), 3, vec![Instance { host: "a:1".to_owned(), users: 25 }])
}

/// What an operation asks for if every answer is right, one word each, static files left out.
fn asked(world: &World, member: &mut Member, operation: Operation) -> Vec<String> {
    let mut visit = Visit::default();
    visit.begin(world, member, operation);
    let mut all = Vec::new();
    while let Some(asked) = visit.next(world, member) {
        visit.asked = asked;
        if !matches!(asked, Asked::Static(..)) {
            all.push(format!("{asked:?}"));
        }
        visit.place = world.scale.events + 9;
        visit.settle(world, member);
    }
    all
}

#[test]
fn whoever_is_in_logs_out_before_they_log_in_or_register_somebody() {
    let world = world();
    let mut member = Member::new(&world, 0, 0);
    assert_eq!(asked(&world, &mut member, Operation::Login), ["Login", "Page"]);
    assert!(member.login > 0);
    assert_eq!(asked(&world, &mut member, Operation::Login), ["Logout", "Login", "Page"]);
    assert_eq!(asked(&world, &mut member, Operation::AddEvent), ["Page", "Event"]);
    assert_eq!(asked(&world, &mut member, Operation::AddPerson), ["Logout", "Page", "Name", "Person"]);
    assert_eq!((member.login, member.fresh), (0, world.scale.events + 9));
    assert_eq!(asked(&world, &mut member, Operation::AddPerson), ["Page", "Name", "Person"]);
}

#[test]
fn whoever_logs_in_has_another_browser() {
    let world = world();
    let mut member = Member::new(&world, 0, 0);
    let picture = (StoredFile::EventThumbnail, 9);
    assert!(member.wants_picture(picture.0, picture.1) && !member.wants_picture(picture.0, picture.1));
    // Nobody was in, so that nobody logs out.
    assert_eq!(asked(&world, &mut member, Operation::Login), ["Login", "Page"]);
    assert!(member.login > 0 && member.wants_picture(picture.0, picture.1));
}

#[test]
fn a_place_is_a_path_or_an_address_of_the_right_page() {
    let place = |text: &str| place_of(text.as_bytes(), "/event?id=");
    assert_eq!([place("/event?id=12"), place("http://10.0.0.1:8080/event?id=12")], [Some(12); 2]);
    for bad in ["/person?id=12", "/event?id=0", "/event?id=", "/event?id=1x", "http://host", "/"] {
        assert_eq!(place(bad), None, "{bad}");
    }
}

#[test]
fn what_others_have_uploaded_is_held_against_itself_and_what_is_loaded_against_its_number() {
    let world = world();
    let mut member = Member::new(&world, 0, 0);
    member.uploaded = 1;
    let mut visit = Visit::default();
    let last = world.scale.people;
    let image = StoredFile::PersonImage;
    assert_eq!(visit.marker(&world, &member, image, last), Some(stored_file_id(1, image, last.into())));
    assert_eq!(visit.marker(&world, &member, image, last + 1), None);
    member.fresh = last + 1;
    visit.begin(&world, &mut member, Operation::PersonDetail);
    assert_eq!(visit.target, last + 1);
    assert_eq!(visit.marker(&world, &member, image, last + 1), Some(form::new_file(&world, &member, image)));
    assert_eq!(visit.marker(&world, &member, StoredFile::EventThumbnail, world.scale.events + 1), None);
}

#[test]
fn the_answer_to_a_user_who_attends_names_them_and_one_more() {
    let world = world();
    let mut member = Member::new(&world, 0, 0);
    member.login = 17;
    let mut visit = Visit { asked: Asked::Attend, ..Visit::default() };
    visit.page.attendees = Some(12);
    let name = world.name(17);
    let mut says = |text: String| {
        visit.text = text.into_bytes();
        visit.attends(&world, &member)
    };
    let answer = |count, person, name: &str| {
        format!("<p id=\"attendees\">{count}</p><a href=\"/person?id={person}\">{name}</a>")
    };
    assert!(says(answer(13, 17, &name)).is_some() && says(answer(15, 17, &name) + "\n").is_some());
    assert!(says(answer(12, 17, &name)).is_none(), "nobody was added");
    assert!(says(answer(13, 18, &name)).is_none() && says(answer(13, 17, "Somebody Else")).is_none());
    assert!(says(String::new()).is_none());
}
