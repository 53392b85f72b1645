//! The kinds of things that are sold: how they are searched for, where they stand in the shop, what they are called,
//! what they cost.
//!
//! A line: search | levels above the last, behind the department's own where they begin with `>` | last levels | names
//! of the thing | style | lowest and highest usual price.

/// Beauty: hair, skin, make-up, tools.
pub(super) const BEAUTY: &str = "\
shampoo & conditioner|>Hair Care>Shampoo & Conditioner|Shampoos;Conditioners;Sets|shampoo;conditioner|hair|7|38
hair masks|>Hair Care>Deep Conditioners & Treatments|Masks;Caps|hair mask;repair mask|hair|8|42
hair oils|>Hair Care>Oils|Leave-In;Scalp Oils|hair oil;scalp oil|hair|7|32
hair loss products|>Hair Care>Hair Loss Products|Serums;Shampoos;Treatments|growth serum;scalp tonic|hair|12|60
hair coloring products|>Hair Care>Hair Coloring|Dyes;Root Touch-Up;Highlights|hair dye;root powder|dye|6|28
styling products|>Hair Care>Styling|Gels;Pomades;Sprays|styling gel;pomade;hairspray|hair|6|26
hair extensions|>Hair Care>Extensions & Wigs|Clip-Ins;Ponytails|clip in extensions;ponytail extension|wig|14|120
wigs|>Hair Care>Extensions & Wigs|Wigs;Wig Caps|wig;bob wig|wig|18|160
hair accessories|>Hair Care>Accessories|Clips;Headbands;Scrunchies|hair clips;headband;scrunchies|tool|5|18
hair cutting tools|>Hair Care>Cutting Tools|Shears;Clippers;Capes|hair shears;clipper set|tool|9|70
styling tools|>Hair Care>Styling Tools|Curling Irons;Flat Irons|curling iron;flat iron|tool|18|95
hair brushes|>Hair Care>Brushes & Combs|Brushes;Combs|paddle brush;detangling comb|tool|5|22
face moisturizers|>Skin Care>Face|Creams;Gels;Oils|face cream;day cream|skin|8|65
face serums|>Skin Care>Face>Treatments|Serums;Ampoules|face serum;vitamin serum|skin|10|80
face cleansers|>Skin Care>Face>Cleansers|Washes;Foams;Bars|face wash;cleansing foam|skin|6|34
toners & astringents|>Skin Care>Face|Toners;Mists|face toner;facial mist|skin|7|36
face masks|>Skin Care>Face|Sheet Masks;Clay Masks|sheet mask;clay mask|skin|5|40
eyes care|>Skin Care>Eyes|Creams;Patches;Gels|eye cream;eye patches|skin|7|58
lips care|>Skin Care>Lip Care|Balms;Scrubs|lip balm;lip scrub|skin|4|20
body care|>Skin Care>Body|Lotions;Butters;Oils|body lotion;body butter|skin|6|38
scrubs & body treatments|>Skin Care>Body|Scrubs;Wraps|body scrub;sugar scrub|skin|8|34
sunscreens|>Skin Care>Sun|Lotions;Sprays;Sticks|sunscreen lotion;sun stick|skin|8|40
foot care|>Foot, Hand & Nail Care>Foot Care|Files;Creams;Baths|foot cream;callus file|tool|6|32
hand care|>Foot, Hand & Nail Care>Hand Care|Creams;Gloves|hand cream;hand balm|skin|4|24
nail care|>Foot, Hand & Nail Care>Nail Care|Files;Clippers;Sets|nail file set;nail clipper|tool|5|24
nail art|>Foot, Hand & Nail Care>Nail Art|Decals;Gems;Brushes|nail stickers;nail gems|makeup|4|18
nail polish|>Foot, Hand & Nail Care>Polish|Gel Polish;Top Coats|gel polish;nail lacquer|makeup|5|26
lips makeup|>Makeup>Lips|Lipsticks;Glosses;Liners|lipstick;lip gloss;lip stain|makeup|4|28
eyes makeup|>Makeup>Eyes|Mascara;Eyeliners;Brow Color|mascara;eyeliner;brow pencil|makeup|5|30
eyeshadow palettes|>Makeup>Eyes|Eyeshadow;Palettes|eyeshadow palette;glitter palette|makeup|8|48
false eyelashes|>Makeup>Eyes>False Lashes|Strips;Clusters|false eyelashes;lash clusters|makeup|5|22
face makeup|>Makeup>Face|Foundation;Concealers;Blushes|foundation;concealer;blush stick|makeup|6|46
face powders|>Makeup>Face|Powders;Setting Sprays|setting powder;pressed powder|makeup|6|34
makeup brushes|>Makeup>Tools|Brush Sets;Sponges|makeup brush set;blending sponge|tool|6|40
makeup remover|>Makeup>Removers|Wipes;Waters;Pads|makeup remover wipes;micellar water|skin|5|24
makeup sets|>Makeup|Sets;Gift Kits|makeup kit;starter set|makeup|14|70
makeup mirrors|>Makeup>Mirrors|Compact;Vanity|compact mirror;vanity mirror|tool|9|60
cosmetic bags|>Tools & Accessories|Bags;Cases|cosmetic bag;train case|bag|8|44
refillable containers|>Tools & Accessories>Containers|Bottles;Jars|travel bottles;pump jars|tool|6|22
cotton balls & swabs|>Tools & Accessories>Cotton|Rounds;Swabs|cotton rounds;cotton swabs|tool|4|16
bathing accessories|>Bath|Loofahs;Brushes;Caps|bath sponge;back brush;shower cap|tool|5|24
body washes|>Bath|Washes;Gels|body wash;shower gel|skin|6|28
bath bombs|>Bath>Additives|Bombs;Salts|bath bombs;bath salts|skin|8|36
soaps|>Bath|Bars;Hand Soap|bar soap;hand soap|skin|4|26
mouthwash|>Oral Care|Rinses;Sprays|mouthwash;oral rinse|oral|5|22
toothpaste|>Oral Care|Pastes;Powders|toothpaste;tooth powder|oral|4|20
toothbrushes & accessories|>Oral Care>Toothbrushes|Manual;Electric;Heads|toothbrush;brush heads|oral|5|90
teeth whitening|>Oral Care|Strips;Pens;Kits|whitening strips;whitening pen|oral|9|58
dental floss & picks|>Oral Care|Floss;Picks|dental floss;floss picks|oral|4|18
women's fragrance|>Fragrance>Women's|Eau de Parfum;Body Mist|eau de parfum;body mist|scent|12|140
men's fragrance|>Fragrance>Men's|Eau de Toilette;Cologne|cologne;eau de toilette|scent|14|130
deodorants & antiperspirants|>Deodorants|Sticks;Roll-Ons|deodorant stick;roll on|scent|4|20
shave & hair removal|>Shave & Hair Removal|Razors;Wax;Trimmers|razor;wax kit;facial trimmer|tool|6|64
massage & relaxation|>Massage|Oils;Tools|massage oil;massage roller|tool|8|72
salon chairs|>Salon Equipment|Chairs;Stools|salon chair;rolling stool|furniture|60|420
tattoo supplies|>Body Art|Temporary;Aftercare|temporary tattoos;tattoo balm|makeup|5|26
piercing supplies|>Body Art>Piercing|Kits;Aftercare|piercing kit;saline spray|tool|6|24
";

/// Electronics.
pub(super) const ELECTRONICS: &str = "\
hdmi cables|>Television & Video>Accessories>Cables|HDMI Cables;Adapters|hdmi cable;hdmi adapter|cable|6|42
usb cables|>Computers>Accessories>Cables|USB-C;Micro USB|usb c cable;charging cord|cable|5|26
power cables|>Accessories>Power|Cords;Adapters|power cord;ac adapter|cable|6|34
network cables|>Computers>Networking|Ethernet;Patch|ethernet cable;patch cord|cable|6|48
audio cables|>Home Audio>Accessories|Optical;RCA;3.5 mm|optical cable;aux cord|cable|6|30
coaxial cables|>Television & Video>Accessories|Coaxial;Splitters|coaxial cable;antenna splitter|cable|6|30
antennas|>Television & Video|Indoor;Outdoor|tv antenna;outdoor antenna|device|16|90
televisions|>Television & Video|LED & LCD TVs;Smart TVs|smart tv;led television|screen|120|1400
projectors|>Television & Video|Portable;Home Theater|video projector;mini projector|screen|60|900
projection screens|>Television & Video>Accessories|Screens;Stands|projector screen;screen stand|screen|24|260
home theater systems|>Home Audio>Home Theater|Sound Bars;Subwoofers|sound bar;subwoofer|audio|45|520
streaming media players|>Television & Video|Boxes;Sticks|streaming box;media player|device|25|160
dvd players|>Television & Video|Players;Recorders|dvd player;portable dvd player|device|30|160
remote controls|>Accessories|Universal;Replacement|remote control;universal remote|device|7|36
mounts|>Accessories>Mounts|Wall Mounts;Ceiling Mounts|tv wall mount;swivel bracket|mount|14|120
headphones|>Headphones|Over-Ear;On-Ear|wireless headphones;over ear headset|audio|18|260
earbud headphones|>Headphones|Earbuds;Sport|wireless earbuds;sport earphones|audio|14|180
bluetooth speakers|>Portable Audio|Speakers;Party|bluetooth speaker;party speaker|audio|18|220
bookshelf speakers|>Home Audio>Speakers|Bookshelf;Floor|bookshelf speakers;floor speaker|audio|50|600
turntables & accessories|>Home Audio|Turntables;Needles|record player;turntable|audio|40|320
boomboxes & portable radios|>Portable Audio|Radios;Boomboxes|portable radio;cd boombox|audio|20|130
alarm clocks|>Portable Audio>Clocks|Digital;Radio|alarm clock;clock radio|device|12|60
voice recorders|>Portable Audio|Digital;Accessories|voice recorder;digital recorder|device|22|110
microphones|>Musical Recording|USB;Lavalier|usb microphone;lavalier mic|audio|15|170
camera tripods|>Camera & Photo>Supports|Tripods;Monopods|camera tripod;phone tripod|mount|15|150
lenses|>Camera & Photo|Lenses;Filters|camera lens;lens filter|camera|18|700
digital cameras|>Camera & Photo|Compact;Action|digital camera;action camera|camera|50|900
camera cases|>Camera & Photo>Bags|Cases;Straps|camera bag;camera strap|bag|10|90
photo studio|>Camera & Photo>Lighting|Backdrops;Softboxes|photo backdrop;softbox light kit|camera|14|190
binoculars & scopes|>Camera & Photo>Optics|Binoculars;Monoculars|binoculars;monocular telescope|camera|20|280
surveillance cameras|>Security|Cameras;Dome|security camera;dome camera|camera|24|260
video surveillance|>Security|Recorders;Kits|surveillance kit;network recorder|camera|60|480
doorbells|>Security|Video;Chimes|video doorbell;door chime|device|22|190
gps navigators|>Car>GPS|Handheld;Car|gps navigator;gps tracker|device|40|320
car audio|>Car>Audio|Receivers;Amplifiers|car stereo;car amplifier|audio|30|360
radar detectors|>Car>Safety|Detectors;Mounts|radar detector;dash mount|device|40|330
signal boosters|>Cell Phones|Boosters;Antennas|signal booster;wifi extender|device|22|380
cell phones|>Cell Phones|Unlocked;Prepaid|cell phone;smartphone|phone|60|850
iphone accessories|>Cell Phones>Accessories|Cases;Chargers;Grips|phone case;magnetic charger|phone|7|48
phone cases|>Cell Phones>Cases|Flip;Bumper|bumper case;wallet case|phone|7|36
screen protectors|>Cell Phones>Accessories|Glass;Film|glass screen protector;privacy film|phone|6|24
chargers & power banks|>Cell Phones>Accessories|Power Banks;Wall Chargers|power bank;wall charger|device|10|75
wearable technology|>Wearables|Smartwatches;Trackers|smart watch;fitness tracker|watch|20|340
smartwatch bands|>Wearables>Accessories|Bands;Cases|watch band;sport band|watch|7|45
virtual reality|>Video Games|Headsets;Accessories|vr headset;vr stand|device|16|420
playstation|>Video Games|Controllers;Docks|game controller;charging dock|device|14|130
xbox accessories|>Video Games|Headsets;Stands|gaming headset;console stand|device|14|120
tablets|>Computers|Tablets;Kids|tablet;kids tablet|screen|50|720
tablet accessories|>Computers>Accessories|Cases;Keyboards|tablet case;folio stand|phone|10|80
laptops|>Computers|Traditional;2 in 1|laptop;convertible laptop|computer|190|1900
desktop computers|>Computers|Towers;Minis|desktop computer;mini pc|computer|160|2100
monitors|>Computers|Gaming;Office|computer monitor;gaming monitor|screen|80|620
keyboards & mice|>Computers>Accessories|Keyboards;Mice|mechanical keyboard;wireless mouse|computer|12|150
webcams|>Computers>Accessories|HD;Conference|webcam;conference camera|camera|18|160
memory & storage|>Computers>Components|SSD;Memory Cards|solid state drive;memory card|computer|12|260
graphics cards|>Computers>Components|Graphics;Cooling|graphics card;case fan|computer|18|900
printers & scanners|>Office|Printers;Scanners|label printer;document scanner|computer|45|420
routers|>Computers>Networking|Routers;Mesh|wifi router;mesh system|device|35|340
";

/// Home and garden.
pub(super) const GARDEN: &str = "\
console tables|>Furniture>Living Room Furniture>Tables|Console;Entry|console table;entry table|furniture|60|880
coffee tables|>Furniture>Living Room Furniture>Tables|Coffee;Nesting|coffee table;nesting tables|furniture|65|620
end tables|>Furniture>Living Room Furniture>Tables|End Tables;Side Tables|end table;side table|furniture|35|320
sofa tables|>Furniture>Living Room Furniture>Tables|Sofa Tables;Snack Tables|sofa table;snack table|furniture|40|340
sofas and couches|>Furniture>Living Room Furniture|Sofas;Sectionals|sectional sofa;loveseat|furniture|240|2600
living room sets|>Furniture>Living Room Furniture|Sets;Reclining|living room set;sofa set|furniture|380|4200
living room chairs|>Furniture>Living Room Furniture|Accent Chairs;Recliners|accent chair;recliner|furniture|95|780
ottomans|>Furniture>Living Room Furniture|Ottomans;Footstools|ottoman;footstool|furniture|35|260
tv stands|>Furniture>Living Room Furniture|Stands;Media Cabinets|tv stand;media console|furniture|80|640
book cases|>Furniture>Home Office Furniture|Bookcases;Ladder Shelves|bookcase;ladder shelf|furniture|50|420
desks|>Furniture>Home Office Furniture|Desks;Standing Desks|writing desk;standing desk|furniture|75|720
home office chairs|>Furniture>Home Office Furniture|Task Chairs;Gaming Chairs|office chair;gaming chair|furniture|80|520
file cabinets|>Furniture>Home Office Furniture|Vertical;Mobile|file cabinet;mobile cabinet|furniture|60|330
dining sets|>Furniture>Dining Room Furniture|Sets;Breakfast Nooks|dining table set;breakfast set|furniture|150|1300
dining chairs|>Furniture>Dining Room Furniture|Chairs;Benches|dining chairs;dining bench|furniture|70|480
bar stools|>Furniture>Dining Room Furniture|Stools;Counter|bar stools;counter stool|furniture|55|420
china cabinets|>Furniture>Dining Room Furniture|Cabinets;Hutches|china cabinet;hutch|furniture|140|980
buffets & sideboards|>Furniture>Dining Room Furniture|Buffets;Sideboards|sideboard;buffet cabinet|furniture|110|820
beds|>Furniture>Bedroom Furniture|Platform;Bunk;Upholstered|platform bed;bunk bed|bed|130|1200
bed frames|>Furniture>Bedroom Furniture|Frames;Headboards|bed frame;headboard|bed|80|520
mattresses|>Furniture>Bedroom Furniture|Foam;Hybrid|memory foam mattress;hybrid mattress|bed|140|1250
dressers|>Furniture>Bedroom Furniture|Dressers;Chests|dresser;chest of drawers|furniture|90|760
nightstands|>Furniture>Bedroom Furniture|Nightstands;Bedside|nightstand;bedside table|furniture|40|260
vanities|>Furniture>Bedroom Furniture|Vanity Tables;Benches|vanity table;makeup desk|furniture|85|520
wardrobes|>Furniture>Bedroom Furniture|Armoires;Closets|wardrobe;portable closet|furniture|45|700
home office furniture sets|>Furniture>Home Office Furniture|Sets;Suites|office set;desk suite|furniture|140|1100
hall trees|>Furniture>Entryway Furniture|Hall Trees;Coat Racks|hall tree;coat rack|furniture|45|330
shoe organizers|>Storage|Racks;Cabinets|shoe rack;shoe cabinet|storage|22|180
storage baskets|>Storage|Baskets;Bins|storage basket;fabric bin|storage|12|60
floating shelves|>Home Decor>Shelves|Floating;Corner|floating shelf;corner shelf|storage|18|95
bathroom cabinets|>Bath>Furniture|Cabinets;Over Toilet|bathroom cabinet;medicine cabinet|furniture|45|340
patio furniture sets|Patio, Lawn & Garden>Patio Furniture|Conversation;Bistro|patio set;bistro set|outdoor|120|1900
patio chairs|Patio, Lawn & Garden>Patio Furniture|Adirondack;Swings|patio chair;porch swing|outdoor|50|420
umbrellas & shade|Patio, Lawn & Garden>Patio Furniture|Umbrellas;Sails|patio umbrella;shade sail|outdoor|30|260
outdoor storage|Patio, Lawn & Garden>Storage|Boxes;Sheds|deck box;garden shed|outdoor|60|900
garden decor|Patio, Lawn & Garden>Outdoor Decor|Statues;Wind Chimes|garden statue;wind chime|outdoor|15|90
planters|Patio, Lawn & Garden>Gardening|Planters;Pots|planter box;flower pot|outdoor|12|120
decorative pillows|>Home Decor>Pillows|Throw Pillows;Covers|throw pillow covers;lumbar pillow|textile|9|48
throw blankets|>Bedding>Blankets|Throws;Fleece|throw blanket;knit throw|textile|15|75
bedding sets|>Bedding|Comforters;Duvet Covers|comforter set;duvet cover set|bedding|28|180
sheets & pillowcases|>Bedding|Sheets;Pillowcases|sheet set;pillowcases|bedding|14|110
window coverings|>Home Decor>Windows|Curtains;Blinds|blackout curtains;roller shade|textile|16|95
area rugs|>Home Decor>Rugs|Area Rugs;Runners|area rug;hallway runner|rug|22|480
kitchen mats|>Home Decor>Rugs|Kitchen;Door Mats|kitchen mat;door mat|rug|14|60
bath rugs|>Bath|Rugs;Mats|bath mat;bath rug set|rug|12|50
towels|>Bath|Bath Towels;Hand Towels|bath towel set;hand towels|textile|12|70
shower curtains|>Bath|Curtains;Liners|shower curtain;curtain liner|textile|10|46
table lamps|>Lighting>Lamps|Table Lamps;Desk Lamps|table lamp;desk lamp|light|22|160
floor lamps|>Lighting>Lamps|Floor Lamps;Torchieres|floor lamp;arc lamp|light|40|260
pendants and chandeliers|>Lighting>Ceiling|Pendants;Chandeliers|pendant light;chandelier|light|35|620
wall lights|>Lighting>Wall|Sconces;Vanity Lights|wall sconce;vanity light|light|24|190
string lights|>Lighting>Novelty|String;Rope|string lights;rope light|light|10|60
artificial plants|>Home Decor|Trees;Flowers|artificial tree;silk flowers|decor|14|150
candles|>Home Decor>Candles|Jar;Pillar|scented candle;pillar candles|decor|10|48
wall art|>Home Decor>Wall Art|Prints;Canvas|canvas print;wall poster|decor|12|170
mirrors|>Home Decor>Mirrors|Wall;Floor|wall mirror;floor mirror|decor|30|320
wallpapers|>Home Decor>Wall Stickers|Wallpaper;Decals|peel and stick wallpaper;wall decal|decor|9|60
clocks|>Home Decor>Clocks|Wall;Mantel|wall clock;mantel clock|decor|14|110
";
