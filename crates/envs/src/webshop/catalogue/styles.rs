//! What things of a style are like: their attributes (always two words), materials and options.
//!
//! A block: style | attributes that stand before a noun | that follow "with" | that follow "for" | materials and
//! traits for titles | kinds of options.

/// The styles.
pub(super) const STYLES: &str = "\
hair|sulfate free;paraben free;cruelty free;color safe;leave in;clinically tested;plant based;alcohol free;
silicone free|argan oil;coconut oil;tea tree;natural ingredients;keratin protein;biotin complex;
rosemary extract;aloe vera|dry hair;damaged hair;curly hair;fine hair;hair growth;frizz control;natural hair;
oily scalp;thinning hair|moisturizing;nourishing;volumizing;smoothing|scent,size

dye|ammonia free;long lasting;semi permanent;cruelty free;easy use|natural ingredients;argan oil;
quinoa protein;mess free|gray coverage;root touchup;dark hair;hair dye;bold looks|creamy;vivid;quick|
shade,size

wig|heat resistant;high quality;double weft;tangle free;hand tied|synthetic hair;human hair;lace front;
adjustable straps;baby bangs|daily wear;hair loss;cosplay party;special occasions|wavy;straight;layered;
shoulder length|shade,length

tool|stainless steel;easy use;easy clean;non slip;high quality;leak proof;double sided;easy carry;rust proof;
bpa free;travel size;fine mist|ergonomic handle;storage case;soft bristles;silicone grip;spare heads;
replacement blades|home salon;sensitive skin;travel kit;beauty salon;dead skin;daily grooming|compact;
professional;reusable;cordless|colour,pack

skin|cruelty free;fragrance free;paraben free;dermatologist tested;oil free;long lasting;plant based;
non greasy;alcohol free;certified organic|hyaluronic acid;vitamin c;tea tree;green tea;shea butter;
natural ingredients;seed oil;salicylic acid;jojoba oil;coconut oil|sensitive skin;dry skin;dark circles;
fine lines;mature skin;acne prone;dead skin;oily skin|hydrating;soothing;brightening;gentle|scent,volume

makeup|long lasting;cruelty free;water proof;smudge proof;easy apply;highly pigmented;travel size;non toxic|
vitamin e;matte finish;shimmer finish;built mirror;rose gold;fine glitter|nail art;eye makeup;sensitive eyes;
evening looks;beginner artists;everyday makeup|velvety;buildable;creamy;lightweight|shade,pack

bag|water resistant;easy clean;travel friendly;double zipped;light weight|padded dividers;carry handle;
inner pockets;faux leather;shoulder strap|toiletry storage;travel kit;makeup storage;camera gear;short trips|
quilted;roomy;foldable|colour,measure

oral|fluoride free;alcohol free;clinically tested;easy use;travel size;sugar free;enamel safe|tea tree;
coconut oil;baking soda;activated charcoal;soft bristles;fresh mint|sensitive teeth;bad breath;
teeth whitening;healthy gums;oral hygiene|refreshing;gentle;minty|flavour,pack

scent|long lasting;cruelty free;alcohol free;travel size;aluminum free;high quality|essential oils;
natural ingredients;woody notes;citrus notes;musk base|sensitive skin;daily wear;evening wear;gift giving|
warm;fresh;bright|scent,volume

furniture|easy assemble;mid century;space saving;heavy duty;solid wood;wall mounted;height adjustable;
assembly required;water proof;fully assembled;easy clean;contemporary design|storage shelves;metal legs;
wood frame;engineered wood;faux leather;tempered glass;storage drawers;wood finish;linen fabric;brass handles;
marble top|living room;dining room;home office;small spaces;guest room;entry hall;dorm room|rustic;modern;
farmhouse;walnut;oak|finish,dimension

cable|gold plated;high speed;heavy duty;plug play;tangle free;fast charging;double shielded;ultra slim|
aluminum shell;braided nylon;gold connectors;ferrite core;right angle;4k support|home theater;gaming console;
office desk;car charging;smart tv|durable;flexible;reversible|length,pack

device|easy install;plug play;high speed;dual band;hands free;long range;compact size;wide coverage;
energy saving;voice controlled|batteries included;quad core;touch buttons;usb port;led display;
signal amplifier;remote control;wall adapter|home office;rural homes;kids room;road trips;smart home;
apartment living|portable;wireless;digital|colour,version

screen|high definition;wall mounted;ultra thin;full hd;high contrast;easy setup|quad core;stereo sound;
hdmi port;built speakers;1080p hd;wide angle;screen mirroring|home theater;outdoor movies;living room;
online classes|portable;bright;slim|inch,version

audio|noise cancelling;hands free;high performance;water proof;long lasting;wall mountable;high fidelity;
fast charging|stereo sound;deep bass;carrying case;wireless bluetooth;built microphone;usb port;aux input|
home theater;outdoor parties;running sports;video calls;music studio|wireless;foldable;rechargeable|
colour,version

mount|heavy duty;easy install;height adjustable;quick release;light weight;fully articulating|aluminum alloy;
carbon steel;ball head;cable clips;bubble level|flat screens;video recording;corner walls;travel photography|
tilting;folding;sturdy|colour,inch

camera|high resolution;night vision;water proof;motion activated;light weight;ultra hd;wide angle;easy carry|
optical zoom;carrying case;image stabilization;steel mount;infrared leds;memory card;clear glass|
bird watching;home security;portrait photography;night shooting;video calls|compact;crisp;rugged|version,pack

phone|shock proof;wireless charging;slim fit;case friendly;scratch resistant;anti fingerprint;drop tested|
tempered glass;card slots;kick stand;soft edges;magnetic ring;glass screen|daily protection;outdoor work;
desk viewing;travel use|clear;matte;rugged|colour,model

watch|water resistant;long lasting;quick release;sweat proof;easy adjust;fast charging|heart rate;
stainless steel;sleep tracking;soft silicone;step counter;touch screen|running sports;daily wear;
swim training;small wrists|breathable;sleek;light|colour,wrist

computer|high performance;quad core;energy efficient;plug play;fast boot;low noise;light weight|intel core;
backlit keys;core i5;solid state;dual fans;metal case;usb hub|home office;video editing;gaming setup;
student work|slim;silent;expandable|memory,version

storage|easy clean;space saving;heavy duty;non woven;wall mounted;stackable design|metal frame;carry handles;
cotton rope;clear window;solid wood|living room;laundry room;entry hall;kids room;bathroom wall|woven;sturdy;
collapsible|colour,dimension

outdoor|weather resistant;easy assemble;rust proof;uv protected;heavy duty;fade resistant;water proof|
steel frame;thick cushions;tempered glass;drainage holes;acacia wood;push button|garden beds;front porch;
pool side;outdoor dining|all weather;folding;wicker|colour,dimension

textile|machine washable;super soft;light filtering;non fading;quick drying;eco friendly;printing technology|
polyester fabric;hidden zipper;fleece backing;cotton blend;tassel trim;rust grommets|living room;bed room;
dining chair;reading corner;guest bathroom|cozy;knitted;velvet;linen|colour,rugsize

bedding|machine washable;wrinkle free;super soft;long lasting;deep pocket;queen size;king size|
brushed microfiber;corner ties;long staple;cotton cover;zip closure|hot sleepers;guest room;all seasons;
college dorms|breathable;cooling;reversible|colour,bedsize

bed|easy assemble;box spring;queen size;twin size;memory foam;high density;noise free|wood slats;steel legs;
button tufted;usb ports;storage drawers;cooling gel|guest room;small spaces;side sleepers;kids room|
upholstered;platform;quilted|bedsize,finish

rug|non slip;easy clean;stain resistant;low pile;machine washable;anti fatigue|latex backing;jute fiber;
geometric pattern;memory foam;thick padding|living room;dining room;high traffic;kitchen floor;entry hall|
faded;woven;shaggy|rugsize,colour

light|easy install;energy efficient;height adjustable;mid century;dimmable led;remote controlled|glass shade;
brushed nickel;brass finish;bronze finish;linen shade;pull chain;metal base|dining room;living room;
reading corner;kitchen island;hallway wall|industrial;modern;minimalist|finish,bulbs

decor|ready hang;hand painted;long lasting;non toxic;easy hang;eco friendly;high quality|wood frame;soy wax;
stretched canvas;beveled edge;peel backing;silent movement|living room;home office;bed room;gift giving;
party tables|abstract;botanical;vintage|dimension,colour

top|machine wash;slim fit;loose fit;classic fit;hand wash;wash cold;quick drying;moisture wicking;
officially licensed;relaxed fit|long sleeve;short sleeve;button closure;crew neck;polyester spandex;
cotton spandex;needle sleeve;ribbed cuffs;chest pocket|daily wear;gym workout;teen girls;office wear;
casual weekends;cold mornings|striped;plain;knit;printed|colour,apparel,fit

coat|wind proof;water resistant;hand wash;slim fit;light weight;machine wash;winter warm|zipper closure;
fleece lining;long sleeve;faux fur;inner pockets;stand collar|cold weather;daily wear;business meetings;
outdoor hiking|quilted;hooded;tailored|colour,apparel

trousers|machine wash;straight leg;slim fit;relaxed fit;wash cold;stretch fit|elastic waist;cotton twill;
button closure;zip fly;cargo pockets;stretch fabric|daily wear;office wear;outdoor work;weekend travel|faded;
pleated;tapered|colour,waist

bottom|high waist;machine wash;hand wash;tummy control;quick drying;wide leg;butt lifting;moisture wicking|
elastic waistband;side pockets;polyester spandex;drawstring waist;mesh lining;nylon spandex|gym workout;
daily wear;yoga class;beach days;running sports|stretch;ribbed;flowing|colour,apparel

sock|machine wash;moisture wicking;arch support;winter warm;quick drying|cushioned sole;reinforced heel;
nylon spandex;ribbed cuff;merino wool|daily wear;running sports;work boots;cold floors|striped;argyle;soft|
colour,pack

shoe|slip resistant;non slip;open toe;light weight;high heel;memory foam;water resistant;day comfort|
rubber sole;rubber outsole;lace closure;ankle strap;faux suede;ethylene vinyl;arch support;leather sole|
daily wear;wedding party;office wear;long walks;beach days|suede;canvas;leather|colour,shoesize

dress|hand wash;machine wash;loose fit;tummy control;quick drying;body shaping;dry clean|short sleeve;
long sleeve;spaghetti straps;polyester spandex;side pockets;lace trim;v neck;adjustable straps|evening party;
daily wear;beach days;wedding guests;teen girls|floral;ruffled;pleated;satin|colour,apparel

snack|gluten free;non gmo;low carb;plant based;dairy free;keto friendly;low sodium;nut free;
individually wrapped|simple ingredients;sea salt;dietary fiber;protein serving;natural flavors;whole grains|
lunch boxes;road trips;office snacks;after school|crunchy;roasted;baked|flavour,pack

sweet|gluten free;non gmo;dairy free;individually wrapped;sugar free;hand crafted;kosher certified|
natural flavors;real fruit;cocoa butter;artificial colors;cane sugar|gift giving;party favors;movie nights;
birthday party|chewy;creamy;rich|flavour,pack

pantry|gluten free;non gmo;usda organic;low sodium;shelf stable;ready eat;plant based;fat free;soy free|
simple ingredients;dietary fiber;cold pressed;protein serving;natural flavors;artificial preservatives|
quick dinners;home baking;meal prep;salad bowls|hearty;classic;aged|flavour,weight

drink|caffeine free;non gmo;usda organic;sugar free;low calorie;fair trade;zero carbs|natural flavors;
real ginger;antioxidant rich;artificial sweeteners;coconut water;green tea|morning routine;cold brew;
iced drinks;hot days|smooth;bold;sparkling|flavour,count";

/// Values of options. A block: kind | name shown | values, from common to rare. Colours are put together from words.
pub(super) const OPTIONS: &str = "\
apparel|size|small;medium;large;x-large;xx-large;x-small;3x-large;4x-large;5x-large;large tall;x-large tall;
xx-large tall;large big;3x-large big

shoesize|size|8;8.5;9;7.5;7;10;6.5;9.5;6;11;10.5;5.5;12;9 wide;8 wide;10 wide;13;11 wide

waist|size|32w x 30l;32w x 32l;34w x 32l;34w x 30l;36w x 32l;30w x 30l;30w x 32l;38w x 32l;36w x 30l;
36w x 34l;38w x 30l;40w x 32l;34w x 34l;42w x 32l;33w x 32l;31w x 30l;40w x 30l;42w x 30l

fit|fit type|men;women;youth

measure|size|small bag;medium bag;large bag;2 piece set

volume|size|4 fl oz;8 fl oz;2 fl oz (pack of 1);16 fl oz;1 fl oz;4 fl oz (pack of 2);12 fl oz

scent|scent|unscented;vanilla bean;fresh linen;citrus grove;coconut;eucalyptus;cucumber;ocean breeze;
almond milk;sandalwood

size|size|8 ounce;12 ounce;16 ounce;32 ounce;12 ounce (pack of 2);8 ounce (pack of 3)

pack|size|1 count;2 count;3 count;1 count (pack of 6);4 count;6 count;1 count (pack of 12);12 count

length|size|6 feet;3 feet;10 feet;15 feet;25 feet;1.5 feet;50 feet;33 feet;75 feet;100 feet

inch|size|32 inch;43 inch;24 inch;55 inch;65 inch;75 inch;100 inch;120 inch

version|style|basic;pro;with remote;with case;2 pack bundle;mini;renewed

model|size|6.1 inch;6.7 inch;5.4 inch;5.8 inch;6.5 inch;7.9 inch

wrist|size|38mm | 40mm;42mm | 44mm;41mm;45mm;small wrist;long wrist

memory|size|8gb ram | 256gb ssd;16gb ram | 512gb ssd;16gb ram | 1tb ssd;32gb ram | 1tb ssd;
4gb ram | 128gb ssd;64gb ram | 2tb ssd

dimension|size|24 x 12 in;36 x 16 in;48 x 18 in;60 x 20 in;12 x 12 in;16 x 20 in;30 x 30 in;72 x 24 in

bedsize|size|queen;king;full;twin;twin xl;california king;split king

rugsize|size|3 ft x 5 ft;5 ft x 7 ft;2 ft x 3 ft;8 ft x 10 ft;18 x 18 in;20 x 30 in;2 ft x 8 ft;9 ft x 12 ft;
16 x 24 in

bulbs|style|1 bulb;2 bulbs;3 bulbs;4 bulbs;6 bulbs

flavour|flavor name|original;vanilla;chocolate;mixed berry;lemon;sea salt;honey;maple;cinnamon;strawberry;
peach;coconut;apple;spicy;garlic;ginger;hazelnut;banana;mango

weight|size|1 pound;2 pound;12 ounce (pack of 6);5 pound;16 ounce (pack of 3);8 ounce (pack of 12);10 pound

count|size|20 count;40 count;100 count;12 count (pack of 4);24 count;60 count";

/// Words that colours are put together from.
pub(super) const BASE_COLOURS: [&str; 26] = [
    "black",
    "white",
    "navy",
    "grey",
    "blue",
    "red",
    "green",
    "pink",
    "brown",
    "beige",
    "khaki",
    "purple",
    "burgundy",
    "yellow",
    "teal",
    "olive",
    "orange",
    "ivory",
    "charcoal",
    "coral",
    "lavender",
    "mustard",
    "turquoise",
    "wine",
    "camel",
    "mint",
];
/// Words that go before a colour.
pub(super) const COLOUR_SHADES: [&str; 10] =
    ["dark", "light", "heather", "royal", "army", "sky", "dusty", "deep", "pale", "bright"];
/// Finishes of furniture and lamps.
pub(super) const FINISHES: [&str; 16] = [
    "walnut",
    "espresso",
    "natural",
    "white",
    "black",
    "rustic brown",
    "grey",
    "white oak",
    "brass",
    "bronze",
    "silver",
    "gold",
    "grey oak",
    "dark walnut",
    "black marble",
    "nickel",
];
/// Shades of hair and make-up.
pub(super) const SHADES: [&str; 18] = [
    "natural",
    "nude",
    "rose",
    "espresso",
    "honey",
    "copper",
    "jet black",
    "dark brown",
    "light brown",
    "burgundy",
    "plum",
    "peach",
    "coral",
    "mocha",
    "champagne",
    "caramel",
    "chestnut",
    "wine red",
];
