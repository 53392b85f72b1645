//! The kinds of things to wear and to eat; see [`super::kinds`].

/// Fashion.
pub(super) const FASHION: &str = "\
men's t-shirts|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|T-Shirts;Tank Tops|t-shirt;tee|top|9|42
men's t-shirts & tanks|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|Tanks;Graphic Tees|graphic tee;tank top|top|9|36
men's polos|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|Polos;Golf|polo shirt;golf polo|top|14|60
men's henleys|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|Henleys;Thermals|henley shirt;waffle henley|top|14|48
men's dress shirts|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|Dress Shirts;Tuxedo Shirts|dress shirt;oxford shirt|top|18|70
men's casual button-down shirts|Clothing, Shoes & Jewelry>Men>Clothing>Shirts|Button-Down;Flannel|flannel shirt;button down shirt|top|16|64
men's fashion hoodies & sweatshirts|Clothing, Shoes & Jewelry>Men>Clothing|Hoodies;Sweatshirts|hoodie;sweatshirt|top|20|72
men's sweaters|Clothing, Shoes & Jewelry>Men>Clothing>Sweaters|Pullovers;Cardigans|pullover sweater;cardigan|top|22|95
men's jackets & coats|Clothing, Shoes & Jewelry>Men>Clothing|Jackets;Coats|bomber jacket;rain coat|coat|32|190
men's suits & sport coats|Clothing, Shoes & Jewelry>Men>Clothing|Suits;Blazers|blazer;two piece suit|coat|48|240
men's jeans|Clothing, Shoes & Jewelry>Men>Clothing>Jeans|Straight;Relaxed|jeans;carpenter jeans|trousers|24|90
men's pants|Clothing, Shoes & Jewelry>Men>Clothing>Pants|Casual;Cargo|cargo pants;chino pants|trousers|22|80
men's shorts|Clothing, Shoes & Jewelry>Men>Clothing>Shorts|Cargo;Athletic|cargo shorts;gym shorts|bottom|14|54
men's activewear|Clothing, Shoes & Jewelry>Men>Clothing>Active|Joggers;Base Layers|joggers;base layer|bottom|16|64
men's swimwear|Clothing, Shoes & Jewelry>Men>Clothing>Swim|Trunks;Briefs|swim trunks;board shorts|bottom|14|52
men's underwear|Clothing, Shoes & Jewelry>Men>Clothing>Underwear|Boxers;Briefs|boxer briefs;trunks|bottom|12|44
men's sleep & lounge|Clothing, Shoes & Jewelry>Men>Clothing>Sleep|Sets;Robes|pajama set;bath robe|bottom|18|68
men's socks|Clothing, Shoes & Jewelry>Men>Clothing>Socks|Crew;Ankle|crew socks;ankle socks|sock|8|28
men's fashion sneakers|Clothing, Shoes & Jewelry>Men>Shoes|Fashion Sneakers;Slip-Ons|sneakers;canvas sneakers|shoe|28|130
men's loafers & slip-ons|Clothing, Shoes & Jewelry>Men>Shoes|Loafers;Moccasins|loafers;driving moccasins|shoe|28|120
men's boots|Clothing, Shoes & Jewelry>Men>Shoes>Boots|Chukka;Work|chukka boots;work boots|shoe|40|190
men's sandals|Clothing, Shoes & Jewelry>Men>Shoes|Sandals;Slides|sandals;slides|shoe|16|85
men's slippers|Clothing, Shoes & Jewelry>Men>Shoes|Slippers;Clogs|house slippers;clogs|shoe|14|60
men's athletic shoes|Clothing, Shoes & Jewelry>Men>Shoes>Athletic|Running;Trail|running shoes;trail shoes|shoe|36|150
women's dresses|Clothing, Shoes & Jewelry>Women>Clothing>Dresses|Casual;Cocktail;Maxi|dress;maxi dress;sundress|dress|16|95
women's tops, tees & blouses|Clothing, Shoes & Jewelry>Women>Clothing>Tops|Blouses;Tunics;Tees|blouse;tunic top;tee|top|11|54
women's sweaters|Clothing, Shoes & Jewelry>Women>Clothing>Sweaters|Pullovers;Cardigans|knit sweater;cardigan|top|20|84
women's fashion hoodies & sweatshirts|Clothing, Shoes & Jewelry>Women>Clothing|Hoodies;Crewnecks|zip hoodie;crewneck sweatshirt|top|18|66
women's bodysuit tops|Clothing, Shoes & Jewelry>Women>Clothing>Bodysuits|Bodysuits;Shapewear|bodysuit;shaping bodysuit|top|14|46
women's jumpsuits, rompers & overalls|Clothing, Shoes & Jewelry>Women>Clothing|Jumpsuits;Overalls|jumpsuit;romper|dress|20|78
women's skirts|Clothing, Shoes & Jewelry>Women>Clothing>Skirts|Midi;Pleated|midi skirt;pleated skirt|bottom|15|58
women's pants|Clothing, Shoes & Jewelry>Women>Clothing>Pants|Wide Leg;Dress|wide leg pants;dress pants|bottom|18|68
women's jeans|Clothing, Shoes & Jewelry>Women>Clothing>Jeans|Skinny;Bootcut|skinny jeans;bootcut jeans|bottom|22|88
women's shorts|Clothing, Shoes & Jewelry>Women>Clothing>Shorts|Denim;Bermuda|denim shorts;bermuda shorts|bottom|14|48
women's leggings|Clothing, Shoes & Jewelry>Women>Clothing>Leggings|Full;Capri|leggings;capri leggings|bottom|12|46
women's activewear|Clothing, Shoes & Jewelry>Women>Clothing>Active|Sets;Yoga|yoga pants;workout set|bottom|16|64
women's swimsuits & cover ups|Clothing, Shoes & Jewelry>Women>Clothing>Swim|One-Piece;Bikinis|one piece swimsuit;bikini set|dress|18|62
women's lingerie, sleep & lounge|Clothing, Shoes & Jewelry>Women>Clothing>Lingerie|Sleep;Bras|nightgown;bralette|dress|12|52
women's coats, jackets & vests|Clothing, Shoes & Jewelry>Women>Clothing|Coats;Vests|puffer vest;trench coat|coat|30|180
women's suiting & blazers|Clothing, Shoes & Jewelry>Women>Clothing|Blazers;Suits|blazer;pant suit|coat|32|150
women's socks & hosiery|Clothing, Shoes & Jewelry>Women>Clothing>Socks|Tights;Crew|tights;knee socks|sock|8|26
women's pumps|Clothing, Shoes & Jewelry>Women>Shoes|Pumps;Heels|pumps;block heel shoes|shoe|24|120
women's flats|Clothing, Shoes & Jewelry>Women>Shoes|Flats;Ballet|ballet flats;pointed flats|shoe|18|85
women's sandals|Clothing, Shoes & Jewelry>Women>Shoes>Sandals|Platforms;Wedges|platform sandals;wedge sandals|shoe|18|95
women's boots|Clothing, Shoes & Jewelry>Women>Shoes>Boots|Ankle;Knee-High|ankle boots;knee high boots|shoe|32|150
women's slippers|Clothing, Shoes & Jewelry>Women>Shoes|Slippers;Booties|plush slippers;slipper booties|shoe|12|48
women's fashion sneakers|Clothing, Shoes & Jewelry>Women>Shoes|Sneakers;Mules|sneakers;mule sneakers|shoe|24|110
women's loafers & slip-ons|Clothing, Shoes & Jewelry>Women>Shoes|Loafers;Espadrilles|loafers;espadrilles|shoe|22|98
";

/// Groceries.
pub(super) const GROCERY: &str = "\
snack foods|Grocery & Gourmet Food>Snack Foods|Chips;Puffs;Mixes|veggie chips;snack mix|snack|6|38
granola & nutrition bars|Grocery & Gourmet Food>Snack Foods>Bars|Granola;Protein|granola bars;protein bars|snack|8|44
crackers|Grocery & Gourmet Food>Snack Foods|Crackers;Crisps|seed crackers;rice crisps|snack|6|30
popcorn|Grocery & Gourmet Food>Snack Foods|Popped;Kernels|popcorn;popcorn kernels|snack|7|34
jerky|Grocery & Gourmet Food>Snack Foods|Beef;Turkey|beef jerky;turkey sticks|snack|9|46
nuts & seeds|Grocery & Gourmet Food>Snack Foods|Nuts;Seeds|roasted almonds;pumpkin seeds|snack|8|48
dried fruits & raisins|Grocery & Gourmet Food>Produce>Dried|Fruit;Dates|dried mango;medjool dates|snack|8|45
candy & chocolate|Grocery & Gourmet Food>Candy|Chocolate;Gummies|chocolate bars;fruit gummies|sweet|6|48
chewing gum|Grocery & Gourmet Food>Candy|Gum;Mints|chewing gum;breath mints|sweet|5|28
cookies|Grocery & Gourmet Food>Bakery|Cookies;Biscotti|oat cookies;shortbread|sweet|6|40
breads & bakery|Grocery & Gourmet Food>Bakery|Breads;Tortillas|rye bread;tortilla wraps|pantry|7|42
breakfast foods|Grocery & Gourmet Food>Breakfast|Cereal;Oatmeal|breakfast cereal;instant oatmeal|pantry|6|38
baking mixes|Grocery & Gourmet Food>Pantry>Baking|Mixes;Flours|pancake mix;almond flour|pantry|7|36
sweeteners|Grocery & Gourmet Food>Pantry>Baking|Syrups;Sugars|maple syrup;monk fruit sweetener|pantry|7|34
pasta & noodles|Grocery & Gourmet Food>Pantry|Pasta;Noodles|lentil pasta;rice noodles|pantry|6|42
rice & grains|Grocery & Gourmet Food>Pantry|Rice;Quinoa|basmati rice;quinoa|pantry|7|50
canned beans|Grocery & Gourmet Food>Pantry>Canned|Beans;Chickpeas|black beans;chickpeas|pantry|8|40
sauces & dressings|Grocery & Gourmet Food>Pantry|Sauces;Dressings|hot sauce;salad dressing|pantry|5|34
oils & vinegars|Grocery & Gourmet Food>Pantry|Olive;Avocado|olive oil;avocado oil|pantry|9|52
herbs & spices|Grocery & Gourmet Food>Pantry>Spices|Blends;Salts|spice blend;sea salt|pantry|5|30
jams & spreads|Grocery & Gourmet Food>Pantry>Spreads|Jams;Nut Butters|fruit jam;peanut butter|pantry|6|32
soups|Grocery & Gourmet Food>Pantry|Broths;Soups|bone broth;vegetable soup|pantry|8|46
coffee|Grocery & Gourmet Food>Beverages|Ground;Pods|ground coffee;coffee pods|drink|9|56
tea|Grocery & Gourmet Food>Beverages|Bags;Loose Leaf|tea bags;loose leaf tea|drink|6|36
juices|Grocery & Gourmet Food>Beverages|Juices;Shots|fruit juice;ginger shots|drink|9|48
soft drinks|Grocery & Gourmet Food>Beverages|Sodas;Sparkling|sparkling water;root beer soda|drink|9|44
powdered drink mixes|Grocery & Gourmet Food>Beverages|Mixes;Electrolytes|drink mix;electrolyte powder|drink|8|42
plant milks|Grocery & Gourmet Food>Beverages|Oat;Almond|oat milk;almond milk|drink|9|46
cheeses|Grocery & Gourmet Food>Dairy|Hard;Soft|aged cheddar;goat cheese|pantry|10|62
meat & seafood|Grocery & Gourmet Food>Meat|Canned;Smoked|smoked salmon;canned tuna|pantry|9|78
gift baskets|Grocery & Gourmet Food>Gifts|Baskets;Boxes|gift basket;snack gift box|sweet|22|110
";
