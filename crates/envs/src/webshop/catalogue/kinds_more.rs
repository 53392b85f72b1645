//! The kinds of things to wear and to eat; see [`super::kinds`].

/// Fashion.
pub(super) const FASHION: &str = "\
men's t-shirts|>Men>Clothing>Shirts|T-Shirts;Tank Tops|t-shirt;tee|top|9|42
men's t-shirts & tanks|>Men>Clothing>Shirts|Tanks;Graphic Tees|graphic tee;tank top|top|9|36
men's polos|>Men>Clothing>Shirts|Polos;Golf|polo shirt;golf polo|top|14|60
men's henleys|>Men>Clothing>Shirts|Henleys;Thermals|henley shirt;waffle henley|top|14|48
men's dress shirts|>Men>Clothing>Shirts|Dress Shirts;Tuxedo Shirts|dress shirt;oxford shirt|top|18|70
men's casual button-down shirts|>Men>Clothing>Shirts|Button-Down;Flannel|flannel shirt;button down shirt|top|16|64
men's fashion hoodies & sweatshirts|>Men>Clothing|Hoodies;Sweatshirts|hoodie;sweatshirt|top|20|72
men's sweaters|>Men>Clothing>Sweaters|Pullovers;Cardigans|pullover sweater;cardigan|top|22|95
men's jackets & coats|>Men>Clothing|Jackets;Coats|bomber jacket;rain coat|coat|32|190
men's suits & sport coats|>Men>Clothing|Suits;Blazers|blazer;two piece suit|coat|48|240
men's jeans|>Men>Clothing>Jeans|Straight;Relaxed|jeans;carpenter jeans|trousers|24|90
men's pants|>Men>Clothing>Pants|Casual;Cargo|cargo pants;chino pants|trousers|22|80
men's shorts|>Men>Clothing>Shorts|Cargo;Athletic|cargo shorts;gym shorts|bottom|14|54
men's activewear|>Men>Clothing>Active|Joggers;Base Layers|joggers;base layer|bottom|16|64
men's swimwear|>Men>Clothing>Swim|Trunks;Briefs|swim trunks;board shorts|bottom|14|52
men's underwear|>Men>Clothing>Underwear|Boxers;Briefs|boxer briefs;trunks|bottom|12|44
men's sleep & lounge|>Men>Clothing>Sleep|Sets;Robes|pajama set;bath robe|bottom|18|68
men's socks|>Men>Clothing>Socks|Crew;Ankle|crew socks;ankle socks|sock|8|28
men's fashion sneakers|>Men>Shoes|Fashion Sneakers;Slip-Ons|sneakers;canvas sneakers|shoe|28|130
men's loafers & slip-ons|>Men>Shoes|Loafers;Moccasins|loafers;driving moccasins|shoe|28|120
men's boots|>Men>Shoes>Boots|Chukka;Work|chukka boots;work boots|shoe|40|190
men's sandals|>Men>Shoes|Sandals;Slides|sandals;slides|shoe|16|85
men's slippers|>Men>Shoes|Slippers;Clogs|house slippers;clogs|shoe|14|60
men's athletic shoes|>Men>Shoes>Athletic|Running;Trail|running shoes;trail shoes|shoe|36|150
women's dresses|>Women>Clothing>Dresses|Casual;Cocktail;Maxi|dress;maxi dress;sundress|dress|16|95
women's tops, tees & blouses|>Women>Clothing>Tops|Blouses;Tunics;Tees|blouse;tunic top;tee|top|11|54
women's sweaters|>Women>Clothing>Sweaters|Pullovers;Cardigans|knit sweater;cardigan|top|20|84
women's fashion hoodies & sweatshirts|>Women>Clothing|Hoodies;Crewnecks|zip hoodie;crewneck sweatshirt|top|18|66
women's bodysuit tops|>Women>Clothing>Bodysuits|Bodysuits;Shapewear|bodysuit;shaping bodysuit|top|14|46
women's jumpsuits, rompers & overalls|>Women>Clothing|Jumpsuits;Overalls|jumpsuit;romper|dress|20|78
women's skirts|>Women>Clothing>Skirts|Midi;Pleated|midi skirt;pleated skirt|bottom|15|58
women's pants|>Women>Clothing>Pants|Wide Leg;Dress|wide leg pants;dress pants|bottom|18|68
women's jeans|>Women>Clothing>Jeans|Skinny;Bootcut|skinny jeans;bootcut jeans|bottom|22|88
women's shorts|>Women>Clothing>Shorts|Denim;Bermuda|denim shorts;bermuda shorts|bottom|14|48
women's leggings|>Women>Clothing>Leggings|Full;Capri|leggings;capri leggings|bottom|12|46
women's activewear|>Women>Clothing>Active|Sets;Yoga|yoga pants;workout set|bottom|16|64
women's swimsuits & cover ups|>Women>Clothing>Swim|One-Piece;Bikinis|one piece swimsuit;bikini set|dress|18|62
women's lingerie, sleep & lounge|>Women>Clothing>Lingerie|Sleep;Bras|nightgown;bralette|dress|12|52
women's coats, jackets & vests|>Women>Clothing|Coats;Vests|puffer vest;trench coat|coat|30|180
women's suiting & blazers|>Women>Clothing|Blazers;Suits|blazer;pant suit|coat|32|150
women's socks & hosiery|>Women>Clothing>Socks|Tights;Crew|tights;knee socks|sock|8|26
women's pumps|>Women>Shoes|Pumps;Heels|pumps;block heel shoes|shoe|24|120
women's flats|>Women>Shoes|Flats;Ballet|ballet flats;pointed flats|shoe|18|85
women's sandals|>Women>Shoes>Sandals|Platforms;Wedges|platform sandals;wedge sandals|shoe|18|95
women's boots|>Women>Shoes>Boots|Ankle;Knee-High|ankle boots;knee high boots|shoe|32|150
women's slippers|>Women>Shoes|Slippers;Booties|plush slippers;slipper booties|shoe|12|48
women's fashion sneakers|>Women>Shoes|Sneakers;Mules|sneakers;mule sneakers|shoe|24|110
women's loafers & slip-ons|>Women>Shoes|Loafers;Espadrilles|loafers;espadrilles|shoe|22|98
";

/// Groceries.
pub(super) const GROCERY: &str = "\
snack foods|>Snack Foods|Chips;Puffs;Mixes|veggie chips;snack mix|snack|6|38
granola & nutrition bars|>Snack Foods>Bars|Granola;Protein|granola bars;protein bars|snack|8|44
crackers|>Snack Foods|Crackers;Crisps|seed crackers;rice crisps|snack|6|30
popcorn|>Snack Foods|Popped;Kernels|popcorn;popcorn kernels|snack|7|34
jerky|>Snack Foods|Beef;Turkey|beef jerky;turkey sticks|snack|9|46
nuts & seeds|>Snack Foods|Nuts;Seeds|roasted almonds;pumpkin seeds|snack|8|48
dried fruits & raisins|>Produce>Dried|Fruit;Dates|dried mango;medjool dates|snack|8|45
candy & chocolate|>Candy|Chocolate;Gummies|chocolate bars;fruit gummies|sweet|6|48
chewing gum|>Candy|Gum;Mints|chewing gum;breath mints|sweet|5|28
cookies|>Bakery|Cookies;Biscotti|oat cookies;shortbread|sweet|6|40
breads & bakery|>Bakery|Breads;Tortillas|rye bread;tortilla wraps|pantry|7|42
breakfast foods|>Breakfast|Cereal;Oatmeal|breakfast cereal;instant oatmeal|pantry|6|38
baking mixes|>Pantry>Baking|Mixes;Flours|pancake mix;almond flour|pantry|7|36
sweeteners|>Pantry>Baking|Syrups;Sugars|maple syrup;monk fruit sweetener|pantry|7|34
pasta & noodles|>Pantry|Pasta;Noodles|lentil pasta;rice noodles|pantry|6|42
rice & grains|>Pantry|Rice;Quinoa|basmati rice;quinoa|pantry|7|50
canned beans|>Pantry>Canned|Beans;Chickpeas|black beans;chickpeas|pantry|8|40
sauces & dressings|>Pantry|Sauces;Dressings|hot sauce;salad dressing|pantry|5|34
oils & vinegars|>Pantry|Olive;Avocado|olive oil;avocado oil|pantry|9|52
herbs & spices|>Pantry>Spices|Blends;Salts|spice blend;sea salt|pantry|5|30
jams & spreads|>Pantry>Spreads|Jams;Nut Butters|fruit jam;peanut butter|pantry|6|32
soups|>Pantry|Broths;Soups|bone broth;vegetable soup|pantry|8|46
coffee|>Beverages|Ground;Pods|ground coffee;coffee pods|drink|9|56
tea|>Beverages|Bags;Loose Leaf|tea bags;loose leaf tea|drink|6|36
juices|>Beverages|Juices;Shots|fruit juice;ginger shots|drink|9|48
soft drinks|>Beverages|Sodas;Sparkling|sparkling water;root beer soda|drink|9|44
powdered drink mixes|>Beverages|Mixes;Electrolytes|drink mix;electrolyte powder|drink|8|42
plant milks|>Beverages|Oat;Almond|oat milk;almond milk|drink|9|46
cheeses|>Dairy|Hard;Soft|aged cheddar;goat cheese|pantry|10|62
meat & seafood|>Meat|Canned;Smoked|smoked salmon;canned tuna|pantry|9|78
gift baskets|>Gifts|Baskets;Boxes|gift basket;snack gift box|sweet|22|110
";
