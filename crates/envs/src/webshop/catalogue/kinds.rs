//! The kinds of things that are sold: how they are searched for, where they stand in the shop, what they are called, what
//! they cost.
//!
//! A line: search | levels above the last | last levels | names of the thing | style | lowest and highest usual price.

/// Beauty: hair, skin, make-up, tools.
pub(super) const BEAUTY: &str = "\
shampoo & conditioner|Beauty & Personal Care>Hair Care>Shampoo & Conditioner|Shampoos;Conditioners;Sets|shampoo;conditioner;hair cleanser|hair|7|38
hair masks|Beauty & Personal Care>Hair Care>Deep Conditioners & Treatments|Masks;Caps|hair mask;repair mask|hair|8|42
hair oils|Beauty & Personal Care>Hair Care>Oils|Leave-In;Scalp Oils|hair oil;scalp oil|hair|7|32
hair loss products|Beauty & Personal Care>Hair Care>Hair Loss Products|Serums;Shampoos;Treatments|growth serum;scalp tonic|hair|12|60
hair coloring products|Beauty & Personal Care>Hair Care>Hair Coloring|Dyes;Root Touch-Up;Highlights|hair dye;root powder|dye|6|28
styling products|Beauty & Personal Care>Hair Care>Styling|Gels;Pomades;Sprays|styling gel;pomade;hairspray|hair|6|26
hair extensions|Beauty & Personal Care>Hair Care>Extensions & Wigs|Clip-Ins;Ponytails|clip in extensions;ponytail extension|wig|14|120
wigs|Beauty & Personal Care>Hair Care>Extensions & Wigs|Wigs;Wig Caps|wig;bob wig|wig|18|160
hair accessories|Beauty & Personal Care>Hair Care>Accessories|Clips;Headbands;Scrunchies|hair clips;headband;scrunchies|tool|5|18
hair cutting tools|Beauty & Personal Care>Hair Care>Cutting Tools|Shears;Clippers;Capes|hair shears;clipper set|tool|9|70
styling tools|Beauty & Personal Care>Hair Care>Styling Tools|Curling Irons;Flat Irons;Hot Air Brushes|curling iron;flat iron;hot air brush|tool|18|95
hair brushes|Beauty & Personal Care>Hair Care>Brushes & Combs|Brushes;Combs|paddle brush;detangling comb|tool|5|22
face moisturizers|Beauty & Personal Care>Skin Care>Face|Creams;Gels;Oils|face cream;day cream|skin|8|65
face serums|Beauty & Personal Care>Skin Care>Face>Treatments|Serums;Ampoules|face serum;vitamin serum|skin|10|80
face cleansers|Beauty & Personal Care>Skin Care>Face>Cleansers|Washes;Foams;Bars|face wash;cleansing foam|skin|6|34
toners & astringents|Beauty & Personal Care>Skin Care>Face|Toners;Mists|face toner;facial mist|skin|7|36
face masks|Beauty & Personal Care>Skin Care>Face|Sheet Masks;Clay Masks|sheet mask;clay mask|skin|5|40
eyes care|Beauty & Personal Care>Skin Care>Eyes|Creams;Patches;Gels|eye cream;eye patches|skin|7|58
lips care|Beauty & Personal Care>Skin Care>Lip Care|Balms;Scrubs|lip balm;lip scrub|skin|4|20
body care|Beauty & Personal Care>Skin Care>Body|Lotions;Butters;Oils|body lotion;body butter|skin|6|38
scrubs & body treatments|Beauty & Personal Care>Skin Care>Body|Scrubs;Wraps|body scrub;sugar scrub|skin|8|34
sunscreens|Beauty & Personal Care>Skin Care>Sun|Lotions;Sprays;Sticks|sunscreen lotion;sun stick|skin|8|40
foot care|Beauty & Personal Care>Foot, Hand & Nail Care>Foot Care|Files;Creams;Baths|foot cream;callus file|tool|6|32
hand care|Beauty & Personal Care>Foot, Hand & Nail Care>Hand Care|Creams;Gloves|hand cream;hand balm|skin|4|24
nail care|Beauty & Personal Care>Foot, Hand & Nail Care>Nail Care|Files;Clippers;Sets|nail file set;nail clipper|tool|5|24
nail art|Beauty & Personal Care>Foot, Hand & Nail Care>Nail Art|Decals;Gems;Brushes|nail stickers;nail gems|makeup|4|18
nail polish|Beauty & Personal Care>Foot, Hand & Nail Care>Polish|Gel Polish;Top Coats|gel polish;nail lacquer|makeup|5|26
lips makeup|Beauty & Personal Care>Makeup>Lips|Lipsticks;Glosses;Liners|lipstick;lip gloss;lip stain|makeup|4|28
eyes makeup|Beauty & Personal Care>Makeup>Eyes|Mascara;Eyeliners;Brow Color|mascara;eyeliner;brow pencil|makeup|5|30
eyeshadow palettes|Beauty & Personal Care>Makeup>Eyes|Eyeshadow;Palettes|eyeshadow palette;glitter palette|makeup|8|48
false eyelashes|Beauty & Personal Care>Makeup>Eyes>False Lashes|Strips;Clusters|false eyelashes;lash clusters|makeup|5|22
face makeup|Beauty & Personal Care>Makeup>Face|Foundation;Concealers;Blushes|foundation;concealer;blush stick|makeup|6|46
face powders|Beauty & Personal Care>Makeup>Face|Powders;Setting Sprays|setting powder;pressed powder|makeup|6|34
makeup brushes|Beauty & Personal Care>Makeup>Tools|Brush Sets;Sponges|makeup brush set;blending sponge|tool|6|40
makeup remover|Beauty & Personal Care>Makeup>Removers|Wipes;Waters;Pads|makeup remover wipes;micellar water|skin|5|24
makeup sets|Beauty & Personal Care>Makeup|Sets;Gift Kits|makeup kit;starter set|makeup|14|70
makeup mirrors|Beauty & Personal Care>Makeup>Mirrors|Compact;Vanity|compact mirror;vanity mirror|tool|9|60
cosmetic bags|Beauty & Personal Care>Tools & Accessories|Bags;Cases|cosmetic bag;train case|bag|8|44
refillable containers|Beauty & Personal Care>Tools & Accessories>Containers|Bottles;Jars|travel bottles;pump jars|tool|6|22
cotton balls & swabs|Beauty & Personal Care>Tools & Accessories>Cotton|Rounds;Swabs|cotton rounds;cotton swabs|tool|4|16
bathing accessories|Beauty & Personal Care>Bath|Loofahs;Brushes;Caps|bath sponge;back brush;shower cap|tool|5|24
body washes|Beauty & Personal Care>Bath|Washes;Gels|body wash;shower gel|skin|6|28
bath bombs|Beauty & Personal Care>Bath>Additives|Bombs;Salts|bath bombs;bath salts|skin|8|36
soaps|Beauty & Personal Care>Bath|Bars;Hand Soap|bar soap;hand soap|skin|4|26
mouthwash|Beauty & Personal Care>Oral Care|Rinses;Sprays|mouthwash;oral rinse|oral|5|22
toothpaste|Beauty & Personal Care>Oral Care|Pastes;Powders|toothpaste;tooth powder|oral|4|20
toothbrushes & accessories|Beauty & Personal Care>Oral Care>Toothbrushes|Manual;Electric;Heads|toothbrush;brush heads|oral|5|90
teeth whitening|Beauty & Personal Care>Oral Care|Strips;Pens;Kits|whitening strips;whitening pen|oral|9|58
dental floss & picks|Beauty & Personal Care>Oral Care|Floss;Picks|dental floss;floss picks|oral|4|18
women's fragrance|Beauty & Personal Care>Fragrance>Women's|Eau de Parfum;Body Mist|eau de parfum;body mist|scent|12|140
men's fragrance|Beauty & Personal Care>Fragrance>Men's|Eau de Toilette;Cologne|cologne;eau de toilette|scent|14|130
deodorants & antiperspirants|Beauty & Personal Care>Deodorants|Sticks;Roll-Ons|deodorant stick;roll on|scent|4|20
shave & hair removal|Beauty & Personal Care>Shave & Hair Removal|Razors;Wax;Trimmers|razor;wax kit;facial trimmer|tool|6|64
massage & relaxation|Beauty & Personal Care>Massage|Oils;Tools|massage oil;massage roller|tool|8|72
salon chairs|Beauty & Personal Care>Salon Equipment|Chairs;Stools|salon chair;rolling stool|furniture|60|420
tattoo supplies|Beauty & Personal Care>Body Art|Temporary;Aftercare|temporary tattoos;tattoo balm|makeup|5|26
piercing supplies|Beauty & Personal Care>Body Art>Piercing|Kits;Aftercare|piercing kit;saline spray|tool|6|24
";

/// Electronics.
pub(super) const ELECTRONICS: &str = "\
hdmi cables|Electronics>Television & Video>Accessories>Cables|HDMI Cables;Adapters|hdmi cable;hdmi adapter|cable|6|42
usb cables|Electronics>Computers>Accessories>Cables|USB-C;Micro USB|usb c cable;charging cord|cable|5|26
power cables|Electronics>Accessories>Power|Cords;Adapters|power cord;ac adapter|cable|6|34
network cables|Electronics>Computers>Networking|Ethernet;Patch|ethernet cable;patch cord|cable|6|48
audio cables|Electronics>Home Audio>Accessories|Optical;RCA;3.5 mm|optical cable;aux cord|cable|6|30
coaxial cables|Electronics>Television & Video>Accessories|Coaxial;Splitters|coaxial cable;antenna splitter|cable|6|30
antennas|Electronics>Television & Video|Indoor;Outdoor|tv antenna;outdoor antenna|device|16|90
televisions|Electronics>Television & Video|LED & LCD TVs;Smart TVs|smart tv;led television|screen|120|1400
projectors|Electronics>Television & Video|Portable;Home Theater|video projector;mini projector|screen|60|900
projection screens|Electronics>Television & Video>Accessories|Screens;Stands|projector screen;screen stand|screen|24|260
home theater systems|Electronics>Home Audio>Home Theater|Sound Bars;Subwoofers|sound bar;subwoofer|audio|45|520
streaming media players|Electronics>Television & Video|Boxes;Sticks|streaming box;media player|device|25|160
dvd players|Electronics>Television & Video|Players;Recorders|dvd player;portable dvd player|device|30|160
remote controls|Electronics>Accessories|Universal;Replacement|remote control;universal remote|device|7|36
mounts|Electronics>Accessories>Mounts|Wall Mounts;Ceiling Mounts|tv wall mount;swivel bracket|mount|14|120
headphones|Electronics>Headphones|Over-Ear;On-Ear|wireless headphones;over ear headset|audio|18|260
earbud headphones|Electronics>Headphones|Earbuds;Sport|wireless earbuds;sport earphones|audio|14|180
bluetooth speakers|Electronics>Portable Audio|Speakers;Party|bluetooth speaker;party speaker|audio|18|220
bookshelf speakers|Electronics>Home Audio>Speakers|Bookshelf;Floor|bookshelf speakers;floor speaker|audio|50|600
turntables & accessories|Electronics>Home Audio|Turntables;Needles|record player;turntable|audio|40|320
boomboxes & portable radios|Electronics>Portable Audio|Radios;Boomboxes|portable radio;cd boombox|audio|20|130
alarm clocks|Electronics>Portable Audio>Clocks|Digital;Radio|alarm clock;clock radio|device|12|60
voice recorders|Electronics>Portable Audio|Digital;Accessories|voice recorder;digital recorder|device|22|110
microphones|Electronics>Musical Recording|USB;Lavalier|usb microphone;lavalier mic|audio|15|170
camera tripods|Electronics>Camera & Photo>Supports|Tripods;Monopods|camera tripod;phone tripod|mount|15|150
lenses|Electronics>Camera & Photo|Lenses;Filters|camera lens;lens filter|camera|18|700
digital cameras|Electronics>Camera & Photo|Compact;Action|digital camera;action camera|camera|50|900
camera cases|Electronics>Camera & Photo>Bags|Cases;Straps|camera bag;camera strap|bag|10|90
photo studio|Electronics>Camera & Photo>Lighting|Backdrops;Softboxes|photo backdrop;softbox light kit|camera|14|190
binoculars & scopes|Electronics>Camera & Photo>Optics|Binoculars;Monoculars|binoculars;monocular telescope|camera|20|280
surveillance cameras|Electronics>Security|Cameras;Dome|security camera;dome camera|camera|24|260
video surveillance|Electronics>Security|Recorders;Kits|surveillance kit;network recorder|camera|60|480
doorbells|Electronics>Security|Video;Chimes|video doorbell;door chime|device|22|190
gps navigators|Electronics>Car>GPS|Handheld;Car|gps navigator;gps tracker|device|40|320
car audio|Electronics>Car>Audio|Receivers;Amplifiers|car stereo;car amplifier|audio|30|360
radar detectors|Electronics>Car>Safety|Detectors;Mounts|radar detector;dash mount|device|40|330
signal boosters|Electronics>Cell Phones|Boosters;Antennas|signal booster;wifi extender|device|22|380
cell phones|Electronics>Cell Phones|Unlocked;Prepaid|cell phone;smartphone|phone|60|850
iphone accessories|Electronics>Cell Phones>Accessories|Cases;Chargers;Grips|phone case;magnetic charger|phone|7|48
phone cases|Electronics>Cell Phones>Cases|Flip;Bumper|bumper case;wallet case|phone|7|36
screen protectors|Electronics>Cell Phones>Accessories|Glass;Film|glass screen protector;privacy film|phone|6|24
chargers & power banks|Electronics>Cell Phones>Accessories|Power Banks;Wall Chargers|power bank;wall charger|device|10|75
wearable technology|Electronics>Wearables|Smartwatches;Trackers|smart watch;fitness tracker|watch|20|340
smartwatch bands|Electronics>Wearables>Accessories|Bands;Cases|watch band;sport band|watch|7|45
virtual reality|Electronics>Video Games|Headsets;Accessories|vr headset;vr stand|device|16|420
playstation|Electronics>Video Games|Controllers;Docks|game controller;charging dock|device|14|130
xbox accessories|Electronics>Video Games|Headsets;Stands|gaming headset;console stand|device|14|120
tablets|Electronics>Computers|Tablets;Kids|tablet;kids tablet|screen|50|720
tablet accessories|Electronics>Computers>Accessories|Cases;Keyboards|tablet case;folio stand|phone|10|80
laptops|Electronics>Computers|Traditional;2 in 1|laptop;convertible laptop|computer|190|1900
desktop computers|Electronics>Computers|Towers;Minis|desktop computer;mini pc|computer|160|2100
monitors|Electronics>Computers|Gaming;Office|computer monitor;gaming monitor|screen|80|620
keyboards & mice|Electronics>Computers>Accessories|Keyboards;Mice|mechanical keyboard;wireless mouse|computer|12|150
webcams|Electronics>Computers>Accessories|HD;Conference|webcam;conference camera|camera|18|160
memory & storage|Electronics>Computers>Components|SSD;Memory Cards|solid state drive;memory card|computer|12|260
graphics cards|Electronics>Computers>Components|Graphics;Cooling|graphics card;case fan|computer|18|900
printers & scanners|Electronics>Office|Printers;Scanners|label printer;document scanner|computer|45|420
routers|Electronics>Computers>Networking|Routers;Mesh|wifi router;mesh system|device|35|340
";

/// Home and garden.
pub(super) const GARDEN: &str = "\
console tables|Home & Kitchen>Furniture>Living Room Furniture>Tables|Console Tables;Entry Tables|console table;entry table|furniture|60|880
coffee tables|Home & Kitchen>Furniture>Living Room Furniture>Tables|Coffee Tables;Nesting Tables|coffee table;nesting tables|furniture|65|620
end tables|Home & Kitchen>Furniture>Living Room Furniture>Tables|End Tables;Side Tables|end table;side table|furniture|35|320
sofa tables|Home & Kitchen>Furniture>Living Room Furniture>Tables|Sofa Tables;Snack Tables|sofa table;snack table|furniture|40|340
sofas and couches|Home & Kitchen>Furniture>Living Room Furniture|Sofas;Sectionals|sectional sofa;loveseat|furniture|240|2600
living room sets|Home & Kitchen>Furniture>Living Room Furniture|Sets;Reclining|living room set;sofa set|furniture|380|4200
living room chairs|Home & Kitchen>Furniture>Living Room Furniture|Accent Chairs;Recliners|accent chair;recliner|furniture|95|780
ottomans|Home & Kitchen>Furniture>Living Room Furniture|Ottomans;Footstools|ottoman;footstool|furniture|35|260
tv stands|Home & Kitchen>Furniture>Living Room Furniture|Stands;Media Cabinets|tv stand;media console|furniture|80|640
book cases|Home & Kitchen>Furniture>Home Office Furniture|Bookcases;Ladder Shelves|bookcase;ladder shelf|furniture|50|420
desks|Home & Kitchen>Furniture>Home Office Furniture|Desks;Standing Desks|writing desk;standing desk|furniture|75|720
home office chairs|Home & Kitchen>Furniture>Home Office Furniture|Task Chairs;Gaming Chairs|office chair;gaming chair|furniture|80|520
file cabinets|Home & Kitchen>Furniture>Home Office Furniture|Vertical;Mobile|file cabinet;mobile cabinet|furniture|60|330
dining sets|Home & Kitchen>Furniture>Dining Room Furniture|Sets;Breakfast Nooks|dining table set;breakfast set|furniture|150|1300
dining chairs|Home & Kitchen>Furniture>Dining Room Furniture|Chairs;Benches|dining chairs;dining bench|furniture|70|480
bar stools|Home & Kitchen>Furniture>Dining Room Furniture|Stools;Counter|bar stools;counter stool|furniture|55|420
china cabinets|Home & Kitchen>Furniture>Dining Room Furniture|Cabinets;Hutches|china cabinet;hutch|furniture|140|980
buffets & sideboards|Home & Kitchen>Furniture>Dining Room Furniture|Buffets;Sideboards|sideboard;buffet cabinet|furniture|110|820
beds|Home & Kitchen>Furniture>Bedroom Furniture|Platform;Bunk;Upholstered|platform bed;bunk bed|bed|130|1200
bed frames|Home & Kitchen>Furniture>Bedroom Furniture|Frames;Headboards|bed frame;headboard|bed|80|520
mattresses|Home & Kitchen>Furniture>Bedroom Furniture|Foam;Hybrid|memory foam mattress;hybrid mattress|bed|140|1250
dressers|Home & Kitchen>Furniture>Bedroom Furniture|Dressers;Chests|dresser;chest of drawers|furniture|90|760
nightstands|Home & Kitchen>Furniture>Bedroom Furniture|Nightstands;Bedside|nightstand;bedside table|furniture|40|260
vanities|Home & Kitchen>Furniture>Bedroom Furniture|Vanity Tables;Benches|vanity table;makeup desk|furniture|85|520
wardrobes|Home & Kitchen>Furniture>Bedroom Furniture|Armoires;Closets|wardrobe;portable closet|furniture|45|700
home office furniture sets|Home & Kitchen>Furniture>Home Office Furniture|Sets;Suites|desk and shelf set;office suite|furniture|140|1100
hall trees|Home & Kitchen>Furniture>Entryway Furniture|Hall Trees;Coat Racks|hall tree;coat rack|furniture|45|330
shoe organizers|Home & Kitchen>Storage|Racks;Cabinets|shoe rack;shoe cabinet|storage|22|180
storage baskets|Home & Kitchen>Storage|Baskets;Bins|storage basket;fabric bin|storage|12|60
floating shelves|Home & Kitchen>Home Decor>Shelves|Floating;Corner|floating shelf;corner shelf|storage|18|95
bathroom cabinets|Home & Kitchen>Bath>Furniture|Cabinets;Over Toilet|bathroom cabinet;medicine cabinet|furniture|45|340
patio furniture sets|Patio, Lawn & Garden>Patio Furniture|Conversation;Bistro|patio set;bistro set|outdoor|120|1900
patio chairs|Patio, Lawn & Garden>Patio Furniture|Adirondack;Swings|patio chair;porch swing|outdoor|50|420
umbrellas & shade|Patio, Lawn & Garden>Patio Furniture|Umbrellas;Sails|patio umbrella;shade sail|outdoor|30|260
outdoor storage|Patio, Lawn & Garden>Storage|Boxes;Sheds|deck box;garden shed|outdoor|60|900
garden decor|Patio, Lawn & Garden>Outdoor Decor|Statues;Wind Chimes|garden statue;wind chime|outdoor|15|90
planters|Patio, Lawn & Garden>Gardening|Planters;Pots|planter box;flower pot|outdoor|12|120
decorative pillows|Home & Kitchen>Home Decor>Pillows|Throw Pillows;Covers|throw pillow covers;lumbar pillow|textile|9|48
throw blankets|Home & Kitchen>Bedding>Blankets|Throws;Fleece|throw blanket;knit throw|textile|15|75
bedding sets|Home & Kitchen>Bedding|Comforters;Duvet Covers|comforter set;duvet cover set|bedding|28|180
sheets & pillowcases|Home & Kitchen>Bedding|Sheets;Pillowcases|sheet set;pillowcases|bedding|14|110
window coverings|Home & Kitchen>Home Decor>Windows|Curtains;Blinds|blackout curtains;roller shade|textile|16|95
area rugs|Home & Kitchen>Home Decor>Rugs|Area Rugs;Runners|area rug;hallway runner|rug|22|480
kitchen mats|Home & Kitchen>Home Decor>Rugs|Kitchen;Door Mats|kitchen mat;door mat|rug|14|60
bath rugs|Home & Kitchen>Bath|Rugs;Mats|bath mat;bath rug set|rug|12|50
towels|Home & Kitchen>Bath|Bath Towels;Hand Towels|bath towel set;hand towels|textile|12|70
shower curtains|Home & Kitchen>Bath|Curtains;Liners|shower curtain;curtain liner|textile|10|46
table lamps|Home & Kitchen>Lighting>Lamps|Table Lamps;Desk Lamps|table lamp;desk lamp|light|22|160
floor lamps|Home & Kitchen>Lighting>Lamps|Floor Lamps;Torchieres|floor lamp;arc lamp|light|40|260
pendants and chandeliers|Home & Kitchen>Lighting>Ceiling|Pendants;Chandeliers|pendant light;chandelier|light|35|620
wall lights|Home & Kitchen>Lighting>Wall|Sconces;Vanity Lights|wall sconce;vanity light|light|24|190
string lights|Home & Kitchen>Lighting>Novelty|String;Rope|string lights;rope light|light|10|60
artificial plants|Home & Kitchen>Home Decor|Trees;Flowers|artificial tree;silk flowers|decor|14|150
candles|Home & Kitchen>Home Decor>Candles|Jar;Pillar|scented candle;pillar candles|decor|10|48
wall art|Home & Kitchen>Home Decor>Wall Art|Prints;Canvas|canvas print;wall poster|decor|12|170
mirrors|Home & Kitchen>Home Decor>Mirrors|Wall;Floor|wall mirror;floor mirror|decor|30|320
wallpapers|Home & Kitchen>Home Decor>Wall Stickers|Wallpaper;Decals|peel and stick wallpaper;wall decal|decor|9|60
clocks|Home & Kitchen>Home Decor>Clocks|Wall;Mantel|wall clock;mantel clock|decor|14|110
";
