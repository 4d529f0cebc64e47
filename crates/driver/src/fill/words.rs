//! Words of titles and names of actors: plain English words and common names, lists of our own.

use std::sync::LazyLock;

/// Words of titles.
pub const TITLE_WORDS: usize = 1_000;
/// First names of actors.
pub const FIRST_NAMES: usize = 200;
/// Last names of actors.
pub const LAST_NAMES: usize = 200;

static WORDS: LazyLock<Words> = LazyLock::new(|| Words {
    title: TITLE.split(' ').collect(),
    first: FIRST.split(' ').collect(),
    last: LAST.split(' ').collect(),
});

/// The lists.
#[derive(Debug)]
pub struct Words {
    /// [`TITLE_WORDS`] words, each once.
    pub title: Vec<&'static str>,
    /// [`FIRST_NAMES`] names, each once.
    pub first: Vec<&'static str>,
    /// [`LAST_NAMES`] names, each once.
    pub last: Vec<&'static str>,
}

/// The lists, cut into words once a process.
#[must_use]
pub fn words() -> &'static Words {
    &WORDS
}

const TITLE: &str = "\
    Alder Almond Alpine Amber Anchor Anvil Apricot April Arbor Arch Archer Arctic Armor Artist Ash Aspen Atlas Attic \
    Auburn Autumn Axle Badge Badger Bagel Bakery Ballad Balloon Bamboo Banjo Banner Barge Barley Barn Barrel Basin \
    Basket Bath Bay Bayou Beach Beacon Bean Bear Beaver Bee Beech Beetle Bell Berry Birch Bird Biscuit Bison Blanket \
    Blaze Bloom Blossom Blue Board Boat Bobbin Bog Bonfire Book Boot Border Bottle Boulder Bowl Box Bramble Branch \
    Brass Bread Breeze Bridge Bright Bristle Brook Broom Broth Brown Bubble Bucket Buckle Bud Buffalo Bugle Builder \
    Bunny Burrow Butter Button Buzzard Cabin Cabinet Cactus Cake Calendar Calm Camel Camera Camp Canary Candle Candy \
    Canoe Canvas Canyon Cape Caramel Caravan Card Cargo Carnival Carpet Carriage Cart Cashew Castle Cat Cattle Cave \
    Cedar Cellar Chain Chair Chalk Chamber Channel Chapel Charcoal Chart Cheddar Cherry Chess Chest Chicken Chimney \
    Chime Chisel Chocolate Chorus Cider Cinnamon Circle Circus Citrus City Clam Clay Cliff Clock Cloth Cloud Clove \
    Clover Coach Coast Cobalt Cobble Cocoa Coconut Coffee Coin Colony Comb Comet Compass Concert Condor Cone Copper \
    Coral Cord Cork Corn Corner Cottage Cougar Country Courier Court Cove Cow Cowboy Cradle Crane Crater Crayon \
    Cream Creek Crescent Cricket Crimson Crocus Crow Crown Crystal Cuckoo Cupboard Current Curtain Cushion Cyclone \
    Cypress Dairy Daisy Dale Dam Dance Dandelion Dawn Deck Deer Delta Den Desert Desk Dew Diary Dinner Dish Distant \
    Dock Doctor Dog Dome Donkey Door Dough Dove Dragon Drawer Drift Drum Duck Dune Dusk Dust Eagle Earth East Easel \
    Echo Eclipse Eddy Edge Egg Elbow Elder Elephant Elk Elm Ember Empire Emu Engine Envelope Equator Evening \
    Evergreen Fable Falcon Family Fan Farm Farmer Fawn Feast Feather Fern Ferry Fiddle Field Finch Finger Fir Fire \
    Firefly Fish Fisher Flag Flame Flamingo Flannel Flask Flax Fleece Float Flock Flood Floor Flour Flower Flute \
    Folk Forest Forge Fork Fort Fossil Fountain Frame Freight Fresh Friday Friend Frigate Frog Fruit Furnace Gable \
    Gale Galaxy Gallery Galley Garden Gardener Garlic Garnet Gate Gather Gazelle Gem Gentle Geyser Giant Ginger \
    Giraffe Glacier Glass Glen Glider Globe Glory Glove Goat Gold Golden Goose Gopher Gorge Grain Granite Grape \
    Grass Gravel Gravy Gray Great Greenhouse Grotto Grove Guest Guitar Gulf Gull Habitat Hail Hall Hammer Hammock \
    Hamster Handle Hare Harmony Harness Harp Harvest Hat Hatch Hawk Hawthorn Hay Hazel Heart Hearth Heath Hedge \
    Hedgehog Helmet Hemlock Herald Herb Herd Heron Hickory Hidden High Highway Hill Hinge Hollow Holly Home Honey \
    Hoof Hook Hope Horn Hornet Horse Hotel Hour House Hunter Hurricane Husk Ibex Ice Icicle Igloo Ink Inlet Inn Iris \
    Iron Island Ivory Jacket Jade Jaguar Jam January Jar Jasmine Jay Jelly Jester Jetty Jewel Jigsaw Journal Jubilee \
    Jug Juice July Jungle Juniper Jupiter Keel Keeper Kennel Kernel Kettle Key Kindle Kingdom Kingfisher Kite \
    Kitchen Kitten Kiwi Knapsack Knob Knoll Knot Koala Lace Ladder Ladle Ladybug Lagoon Lake Lamb Lamp Lantern Larch \
    Larder Lark Lasso Lattice Laurel Lava Lawn Leaf Leather Ledge Legend Lemon Lentil Letter Lettuce Level Library \
    Lichen Light Lighthouse Lily Lime Limestone Linden Linen Lion Lizard Lobster Locket Loft Log Lotus Lounge Low \
    Lumber Lunar Lynx Lyric Macaw Magnet Magnolia Mahogany Mallet Mammoth Mango Mansion Mantle Maple March Mare \
    Marigold Mariner Market Marmalade Marsh Mason Mast Meadow Medal Melody Melon Merchant Meridian Mesa Meteor \
    Middle Midnight Mile Mill Miller Mineral Mint Mirror Mist Mitten Mole Monday Moon Moose Morning Mortar Mosaic \
    Moth Mother Motor Mountain Mouse Mulberry Muffin Museum Mushroom Music Mustang Mustard Myrtle Narrow Nautilus \
    Navy Nebula Neck Nectar Needle Neighbor Nettle Newt Nickel Night Nightingale Noble Noon Notebook Novel November \
    Nugget Nursery Nut Nutmeg Oar Oasis Oat Ocean Ocelot Ochre October Omelet Onion Onyx Opal Open Opera Orange \
    Orchard Orchid Organ Oriole Osprey Otter Oval Oven Owl Ox Oyster Paddle Page Painter Palace Palm Pancake Panda \
    Panel Pansy Papaya Paper Parade Parcel Park Parrot Parsley Passage Pasta Pasture Patch Path Patio Pavilion \
    Peacock Peak Peanut Pear Pearl Pebble Pecan Pelican Pen Pencil Penguin Penny Peony Pepper Petal Petunia Pewter \
    Pheasant Phoenix Piano Pickle Pier Pigeon Pilgrim Pillar Pillow Pilot Pine Pioneer Pipe Pirate Pistachio Pixel \
    Plain Plank Plate Platform Plaza Plow Plum Plume Poem Poet Polar Polka Pollen Pond Pony Poppy Porch Porcupine \
    Porridge Port Postcard Pot Potter Prairie Present Prince Prism Promise Puddle Pulley Pumpkin Puppet Purple \
    Puzzle Pyramid Quail Quartz Queen Quest Quiet Quill Quilt Quince Rabbit Raccoon Radio Radish Raft Rail Rain \
    Raisin Ramp Ranch Ranger Rapids Raspberry Raven Recipe Red Redwood Reed Reef Reindeer Ribbon Ridge Riddle Ring \
    Ripple River Road Rocket Rock Roof Rooster Root Rope Rose Rowan Royal Ruby Rudder Rug Rumba Runner Rustic Rye \
    Saddle Saffron Sage Sail Sailor Salmon Salt Sand Sandal Sandstone Sapling Sapphire Satin Saturday Saucer Savanna \
    Scarf Scarlet School Scooter Scroll Sea Seal Season Seed Sentry Sequoia Shadow Shale Shawl Shed Sheep Shelf \
    Shelter Shepherd Shingle Ship Shore Shovel Shrimp Sierra Signal Silent Silk Silver Singer Sister Sketch Skiff \
    Sky Slate Sled Slope Smoke Snail Snow Snowflake Soap Solar Sonata Sorrel Soup South Spade Spaniel Spark Sparrow \
    Spider Spindle Spiral Spire Splash Sponge Spoon Spring Sprout Spruce Square Squash Squirrel Stable Stairs Star \
    Starling Station Statue Steam Steel Steppe Stone Stork Storm Story Stove Straw Stream Street String Stripe \
    Studio Sugar Summer Sun Sunday Sundial Sunrise Sunset Surf Swallow Sweater Swift Sycamore Symphony Syrup Table \
    Talon Tandem Tangerine Tango Tapestry Tartan Tavern Teacher Teal Teapot Temple Tent Terrace Thicket Thistle \
    Thread Thrush Thunder Thursday Thyme Tide Timber Tinder Toast Toffee Tomato Topaz Torch Toucan Towel Tower Town \
    Trail Train Trapeze Treasure Tree Trellis Triangle Tribe Tricycle Trophy Truck Trumpet Trunk Tulip Tundra Tunnel \
    Turnip Turtle Tweed Twig Twilight Twin Umber Umbrella Uplands Upper Urchin Vale Valley Vanilla Vapor Vault \
    Velvet Veranda Vessel Vest Victory Village Vine Vineyard Violet Violin Visitor Vista Volcano Voyage Wafer Wagon \
    Walnut Walrus Waltz Warbler Water Waterfall Watermelon Wave Wax Weasel Wedge Wednesday Well West Whale Wharf \
    Wheat Whisper Whistle White Wicker Wild Willow Wind Window Wing Winter Wise Wizard Wolf Wonder Woodland \
    Woodpecker Wool Workshop World Wren Wreath Yard Yarn Year Yellow Yeoman Yew Yogurt Yucca Zebra Zenith Zephyr \
    Zinc Zinnia Zither";

const FIRST: &str = "\
    Aaron Abigail Ada Adam Agnes Alan Albert Alice Alfred Amanda Amelia Amy Andrew Angela Anita Anna Anthony Arthur \
    Audrey Barbara Beatrice Benjamin Bernard Bertha Betty Beverly Brenda Brian Bridget Bruce Calvin Camille Carl \
    Carla Carol Caroline Catherine Cecil Charles Charlotte Chester Christine Clara Clarence Claude Colin Connie Cora \
    Craig Cynthia Daisy Daniel Danielle David Deborah Dennis Diana Dominic Donald Donna Dora Doris Dorothy Douglas \
    Duncan Edgar Edith Edmund Edward Edwin Elaine Eleanor Elizabeth Ella Ellen Elmer Elsie Emily Emma Eric Ernest \
    Esther Ethel Eugene Eva Evelyn Felix Florence Frances Francis Frank Fred Gary Genevieve George Gerald Gladys \
    Glenn Gloria Gordon Grace Greta Gregory Hannah Harold Harriet Harry Hazel Heather Helen Henry Herbert Herman \
    Hilda Howard Hugh Ida Irene Iris Isaac Isabel Ivan Ivy Jack Jacob James Jane Janet Jason Jean Jeffrey Jennifer \
    Jessica Joan Joel John Jonathan Joseph Josephine Joyce Judith Julia Julian June Karen Katherine Keith Kenneth \
    Kevin Laura Lawrence Leo Leonard Leslie Lewis Lillian Linda Lois Louis Louise Lucy Luke Lydia Mabel Margaret \
    Maria Marian Marjorie Mark Martha Martin Mary Matthew Maurice Maxine Melissa Michael Mildred Minnie Miriam Molly \
    Monica Morris Nancy Naomi Nathan Neil Nicholas Nina Nora Norman Olive Oliver Oscar Owen Pamela Patricia Paul \
    Pauline Peter";

const LAST: &str = "\
    Abbott Adams Allen Anderson Andrews Armstrong Arnold Atkins Austin Bailey Baker Baldwin Ball Barker Barnes \
    Barrett Barton Bates Baxter Beck Bell Bennett Benson Berry Bishop Black Blair Blake Bond Bowen Bowman Boyd \
    Bradley Brady Brewer Briggs Brooks Brown Bryant Burke Burns Burton Bush Butler Byrne Caldwell Cameron Campbell \
    Carlson Carpenter Carr Carroll Carter Casey Chambers Chandler Chapman Christensen Clark Clayton Cobb Cohen Cole \
    Coleman Collins Conway Cook Cooper Cox Craig Crawford Cross Cunningham Curtis Dalton Daniels Davidson Davis \
    Dawson Day Dean Dixon Douglas Doyle Drake Duncan Dunn Edwards Elliott Ellis Erickson Evans Farmer Ferguson \
    Fields Fisher Fleming Fletcher Flynn Ford Foster Fowler Fox Francis Franklin Frazier Freeman French Frost Fuller \
    Gardner Garrett George Gibbs Gibson Gilbert Gill Goodman Gordon Graham Grant Gray Green Greene Griffin Griffith \
    Hale Hall Hamilton Hammond Hansen Hardy Harmon Harper Harris Harrison Hart Harvey Hawkins Hayes Henderson Henry \
    Hicks Higgins Hill Hodges Hoffman Holland Holmes Holt Hopkins Horton Houston Howard Howell Hudson Hughes Hunt \
    Hunter Ingram Jackson Jacobs James Jenkins Jennings Jensen Johnson Johnston Jones Jordan Joseph Keller Kelley \
    Kelly Kennedy Kerr King Klein Knight Lambert Lane Larson Lawrence Lawson Lewis Lindsey Little Lloyd Logan Long \
    Lowe Lucas Lynch Lyons Marsh Marshall Martin Mason Mitchell Murray";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_list_has_its_length_and_no_word_twice() {
        let words = words();
        for (list, length) in [(&words.title, TITLE_WORDS), (&words.first, FIRST_NAMES), (&words.last, LAST_NAMES)] {
            assert_eq!(list.len(), length);
            assert_eq!(list.iter().collect::<HashSet<_>>().len(), length);
            // What full text makes one word of, whatever its language.
            assert!(list.iter().all(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphabetic())));
        }
    }
}
