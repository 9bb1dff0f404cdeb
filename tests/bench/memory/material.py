"""Topics and wordings of the generated conversations.

A topic is told in one wording and asked about in two: one that shares its words, one
that says the same in others. Topics take turns between the half of the bench that may be
tuned on and the half that is reported, so that no wording is in both.
"""
# ruff: noqa: RUF001  # other scripts have letters that look like Latin ones

from typing import NamedTuple


class Topic(NamedTuple):
    """Something that a user tells about; `{v}` stands for what differs.

    Attributes:
        told: ways to tell it.
        plain: a question in much the same words.
        reworded: a question in other words.
        values: what it may be.
        noise: what else is said about the same thing, without an answer in it.
    """

    told: tuple[str, ...]
    plain: str
    reworded: str
    values: tuple[str, ...]
    noise: tuple[str, ...]


TOPICS = (
    Topic(
        ("My dog is called {v}, by the way.", "We named the new puppy {v}."),
        "What is my dog called?",
        "What's the name of our pet, the one that barks?",
        ("Biscuit", "Rufus", "Pepper", "Waldo", "Juno", "Mochi"),
        ("How often should a dog be washed?", "The dog chewed a shoe again."),
    ),
    Topic(
        ("I drive a {v} these days.", "Bought a car yesterday, a used {v}."),
        "Which car do I drive?",
        "What vehicle do I own?",
        ("Volvo V60", "Fiat Panda", "Mazda 3", "Skoda Octavia", "Renault Zoe", "Honda Jazz"),
        ("The car makes a rattling noise when I drive uphill.", "How do winter tyres differ?"),
    ),
    Topic(
        ("I started a job as {v} this month.", "I work as {v}."),
        "What job did I start?",
        "How do I earn my living? What's my profession?",
        ("a paramedic", "a bookbinder", "an air traffic controller", "a locksmith", "a geologist"),
        ("How do I ask for a raise at work?", "My job interview outfit is still at the cleaner's."),
    ),
    Topic(
        ("I moved to {v} and I like the flat.", "We live in {v} now."),
        "Which town did I move to?",
        "Where is my home these days?",
        ("Lisbon", "Gothenburg", "Ljubljana", "Porto Alegre", "Aarhus", "Ghent"),
        ("Is it cheaper to hire a van when you move?", "The flat below ours is noisy."),
    ),
    Topic(
        ("I'm allergic to {v}, it makes my throat swell.", "Doctor says no {v}, I get hives."),
        "What am I allergic to?",
        "Which foods must I avoid for health reasons?",
        ("walnuts", "shellfish", "sesame", "kiwi", "celery", "lupin"),
        ("Are allergy tests painful?", "Pollen is bad today, my eyes itch."),
    ),
    Topic(
        ("My sister is getting married in {v}.", "The wedding of my sister will be in {v}."),
        "Where is my sister getting married?",
        "At which place does the ceremony of my sibling happen?",
        ("Sorrento", "Galway", "Kyoto", "Valparaiso", "Tallinn"),
        ("What does one write on a wedding card?", "My sister wants a band, not a DJ."),
    ),
    Topic(
        ("I am learning {v} with a tutor.", "I take {v} lessons on Tuesdays."),
        "Which lessons do I take?",
        "What skill am I picking up with a teacher?",
        ("the cello", "Portuguese", "fencing", "calligraphy", "the accordion", "sign language"),
        ("How long until lessons pay off?", "My tutor cancelled again."),
    ),
    Topic(
        ("The wifi password at the cabin is {v}.", "I set the cabin's wifi password to {v}."),
        "What is the wifi password at the cabin?",
        "How do I get online in our holiday hut?",
        ("maple-otter-19", "blueTeapot7", "quietpine442", "seven.geese", "lantern_88"),
        ("The cabin roof leaks.", "How do I choose a good password?"),
    ),
    Topic(
        ("My favourite novel is {v}.", "I reread {v}, still the book I love most."),
        "What is my favourite novel?",
        "Which story do I like to read above all others?",
        ("Middlemarch", "The Leopard", "Beloved", "Solaris", "Stoner", "Momo"),
        ("Is a novel longer than a novella?", "The library wants two books back."),
    ),
    Topic(
        ("My knee surgery is booked with Dr {v}.", "Dr {v} will operate on my knee."),
        "Which doctor will operate on my knee?",
        "Who is the surgeon treating my leg?",
        ("Okonkwo", "Lindqvist", "Baptiste", "Yamauchi", "Ferreira"),
        ("Is swimming good for a bad knee?", "What is a meniscus?"),
    ),
    Topic(
        ("For dinner guests I always cook {v}.", "My best dish for guests is {v}."),
        "What do I cook for dinner guests?",
        "Which meal do I serve when people visit?",
        ("mushroom risotto", "lamb tagine", "pierogi", "laksa", "moussaka", "feijoada"),
        ("How long does cooked rice keep?", "The guests stayed until two."),
    ),
    Topic(
        ("Our rent is {v} a month.", "The landlord set the rent at {v} a month."),
        "How much is our rent?",
        "What do I pay for the apartment?",
        ("1,140 euros", "985 pounds", "1,320 euros", "870 dollars", "1,675 francs"),
        ("May a landlord keep a spare key?", "Rent is due on the third."),
    ),
    Topic(
        ("I'm saving money for {v}.", "My savings are meant for {v}."),
        "What am I saving money for?",
        "On what do I plan to spend the cash I put aside?",
        ("a sailing boat", "a piano", "a greenhouse", "a trip to Patagonia", "a cargo bike"),
        ("Is a savings account safe?", "Money is tight until payday."),
    ),
    Topic(
        ("My daughter goes to {v} school.", "We picked {v} school for my daughter."),
        "Which school does my daughter go to?",
        "Where is my girl being taught?",
        ("Birchwood", "St Columba's", "Harrow Lane", "Meadowbank", "Fairholme"),
        ("At what age do children start school?", "My daughter lost a tooth."),
    ),
    Topic(
        ("I run the {v} every autumn.", "I signed up to run the {v}."),
        "Which race did I sign up to run?",
        "In what athletic event am I competing?",
        ("Harbour Half Marathon", "Vale Ultra", "Moorland Ten", "Castle Relay", "Fjord Marathon"),
        ("My running shoes squeak.", "How many days before a race should I rest?"),
    ),
    Topic(
        ("My laptop runs {v}.", "I installed {v} on my laptop."),
        "What did I install on my laptop?",
        "Which operating system does my computer use?",
        ("Fedora", "Debian", "NixOS", "Haiku", "FreeBSD", "Void Linux"),
        ("The laptop fan is loud.", "How do I clean a laptop screen?"),
    ),
    Topic(
        ("Granny's birthday is on {v}.", "We celebrate Granny's birthday on {v}."),
        "When is Granny's birthday?",
        "On which date was my grandmother born?",
        ("the 9th of June", "the 21st of August", "the 2nd of October", "the 17th of February"),
        ("Granny asks what a podcast is.", "What is a good birthday game for adults?"),
    ),
    Topic(
        ("I hid the spare key {v}.", "The spare key is {v}."),
        "Where did I hide the spare key?",
        "How can someone get into the house without me being there?",
        ("under the blue pot", "in the bird box", "behind the loose brick", "in the gas meter"),
        ("A key broke in the lock once.", "Do smart locks need a key?"),
    ),
    Topic(
        ("My startup sells {v}.", "The company I founded makes {v}."),
        "What does my startup sell?",
        "Which product does my business offer?",
        ("compost heaters", "bamboo crutches", "beehive sensors", "rain barrels", "cork yoga mats"),
        ("Does a startup need an accountant?", "A founder I know sold her shares."),
    ),
    Topic(
        ("My blood type is {v}.", "The lab says my blood type is {v}."),
        "What is my blood type?",
        "If I needed a transfusion, what group am I?",
        ("AB negative", "O negative", "B positive", "A negative"),
        ("Does giving blood hurt?", "The lab was closed."),
    ),
    Topic(
        ("My tomatoes died of {v}.", "The gardener blames {v} for my dead tomatoes."),
        "What did my tomatoes die of?",
        "Which disease killed the vegetables I was growing?",
        ("late blight", "fusarium wilt", "whitefly", "blossom rot", "mosaic virus"),
        ("When are tomatoes ripe?", "The garden needs a new hose."),
    ),
    Topic(
        ("I support {v}, have done since I was six.", "My football team is {v}."),
        "Which football team do I support?",
        "What soccer club am I a fan of?",
        ("Heart of Midlothian", "Real Betis", "Union Berlin", "Brentford", "Sampdoria"),
        ("Why is football played with eleven?", "The match was called off."),
    ),
    Topic(
        ("I play {v} in the orchestra.", "My instrument in the band is {v}."),
        "What do I play in the orchestra?",
        "Which musical thing am I performing on?",
        ("the bassoon", "the viola", "the timpani", "the oboe", "the French horn"),
        ("How are orchestras seated?", "The band needs a room to practise in."),
    ),
    Topic(
        ("My phone contract is with {v}.", "I switched my phone to {v}."),
        "Who is my phone contract with?",
        "Which mobile provider am I a customer of?",
        ("Telmora", "BlueCell", "Nordfon", "Airwave", "Zipline"),
        ("My phone battery lasts half a day.", "Can a contract be cancelled by mail?"),
    ),
)

# Those of whom the same thing is told, one each.
PEOPLE = (
    "my brother", "my neighbour", "my boss", "aunt Clara", "uncle Theo", "my cousin Nils",
    "Priya", "old Mr Hart", "my friend Joan", "my flatmate", "Sofia", "the plumber",
)  # fmt: skip
# What is told of people, the question in other words, and what differs.
ABOUT_PEOPLE = (
    ("{who} has a cat called {v}.", "What name did {who} give the cat?",
     ("Tiger", "Smudge", "Olive", "Nimbus", "Figaro", "Pickle", "Ziggy", "Maud")),
    ("{who} moved to {v} last spring.", "Where does {who} live since moving?",
     ("Leeds", "Vilnius", "Cork", "Basel", "Trieste", "Malmo", "Bruges", "Split")),
    ("{who} is afraid of {v}.", "What scares {who}?",
     ("heights", "spiders", "thunder", "lifts", "geese", "the dentist", "deep water", "clowns")),
    ("{who} always orders {v} at the café.", "What does {who} usually drink at the café?",
     ("mint tea", "a flat white", "cocoa", "ginger ale", "an espresso", "chai", "lemonade")),
    ("{who} wants {v} for a present.", "What gift would make {who} happy?",
     ("a kite", "opera tickets", "a chess set", "wool socks", "a telescope", "a fern")),
    ("{who} studied {v} at university.", "Which subject did {who} read at university?",
     ("botany", "law", "theology", "metallurgy", "Slavic languages", "statistics")),
)  # fmt: skip

# Done over and over, on dates that the question names.
DATED = (
    ("Today I cooked {v}.", "What did I cook {when}?",
     ("a lentil stew", "ramen", "quiche", "a fish pie", "gnocchi", "dal", "shakshuka", "borscht")),
    ("I went hiking at {v} today.", "Where did I go hiking {when}?",
     ("Raven Gorge", "Lake Ansel", "Mount Tern", "the Salt Path", "Owl Ridge", "Fox Fell")),
    ("Finished watching {v} tonight.", "Which film did I watch {when}?",
     ("Stalker", "Amélie", "Paprika", "The Third Man", "Parasite", "Roma", "Ikiru", "Playtime")),
    ("The doctor measured my blood pressure: {v}.", "What was my blood pressure {when}?",
     ("128 over 82", "135 over 90", "119 over 76", "142 over 95", "124 over 79", "131 over 88")),
    ("Spent {v} on groceries this morning.", "How much did I spend on groceries {when}?",
     ("41.20", "63.75", "28.10", "90.05", "55.60", "37.45", "72.30", "19.99")),
    ("Met {v} for lunch.", "Whom did I meet for lunch {when}?",
     ("Ingrid", "Tomasz", "Leila", "Bernard", "Xin", "Amara", "Dmitri", "Rosalind")),
)  # fmt: skip

# Told in two turns: the second alone has what is asked for.
SPLIT = (
    ("I finally chose a paint colour for the hallway!", "Lovely! Which one did you take?",
     "{v}. Two tins of it.", "Which paint colour did I choose for the hallway?",
     ("Moss green", "Terracotta", "Pale ochre", "Slate blue")),
    ("Guess which topic I picked for my thesis.", "I can't guess. Tell me!",
     "{v}! My supervisor approves.", "What is the topic of my thesis?",
     ("Medieval bridges", "Bat navigation", "Glacier tourism", "Tram networks")),
    ("There's a name for the boat at last.", "Exciting. What will it be?",
     "We settled on {v}, and the kids love it.", "What is the name of the boat?",
     ("Sea Parsnip", "Nightjar", "Miss Tallow", "Grey Comet")),
    ("I know now what was wrong with the boiler.", "What was it?",
     "{v}, said the man, and it cost 90.", "What was wrong with the boiler?",
     ("A stuck valve", "A dead pump", "Limescale", "A cracked seal")),
    ("The jury told me which prize my photo won.", "Congratulations! Which?",
     "{v}, and they'll print it.", "Which prize did my photo win?",
     ("Third place", "The public's award", "An honourable mention", "The newcomer's award")),
    ("I decided what to do with the attic.", "And? What's the plan?",
     "{v}, starting next week.", "What did I decide to do with the attic?",
     ("A darkroom", "A guest bedroom", "A model railway", "A sewing studio")),
)  # fmt: skip

# Told in two turns far apart: one names somebody or something, the other tells more of that name.
HOPS = (
    ("My manager is called {a}.", "{a} went to school in {b}.",
     "Where did my manager go to school?",
     ("Ottilie", "Bramwell", "Zsofia", "Kwame"), ("Debrecen", "Truro", "Lund", "Kumasi")),
    ("We adopted a cat and named her {a}.", "{a} got sick from eating {b}.",
     "What made our cat sick?",
     ("Quill", "Bonnie", "Tapioca", "Widget"), ("lilies", "raw dough", "tinsel", "onions")),
    ("The band I sing in is called {a}.", "{a} will play at {b} in summer.",
     "Where will the band I sing in play?",
     ("Velvet Ditch", "The Loft Owls", "Plum Radio"), ("Quayside", "the mill", "Elm Fair")),
    ("My dentist is Dr {a}.", "Dr {a} moved the practice to {b}.",
     "To which place did my dentist move?",
     ("Hallström", "Nkemelu", "Costigan"), ("Harbour Street", "the old bank", "Tower Road")),
    ("I bought my bike at {a}.", "{a} closes down because of {b}.",
     "Why does the shop where I bought my bike close?",
     ("Spoke & Son", "Pedalworks", "Rad Haus"), ("a flood", "the new bypass", "a lost lease")),
    ("My sister's boyfriend is {a}.", "{a} works for {b}.",
     "Who does the boyfriend of my sister work for?",
     ("Casimir", "Leopold", "Ignacio"), ("the tram company", "a zoo", "a piano maker")),
    ("Our hotel in Rome is the {a}.", "The {a} has no {b}, they wrote.",
     "What does our hotel in Rome lack?",
     ("Aurelia", "Campanile", "Tre Pini"), ("lift", "breakfast room", "air conditioning")),
    ("The train to my parents leaves from {a}.", "{a} is closed until {b}.",
     "Until when is the station closed that the train to my parents leaves from?",
     ("Northgate", "Sandhills", "Vale Cross"), ("Easter", "the 3rd of May", "next winter")),
)  # fmt: skip

# Asked by the user, answered by the assistant, who is asked for it again.
RECOMMENDED = (
    ("Which board game suits two players?", "For two I would take {v}.",
     "What board game did you recommend for two?",
     ("Patchwork", "Jaipur", "Lost Cities", "Hive")),
    ("What helps against moths in the wardrobe?", "Try {v}; moths dislike it.",
     "What was your advice against moths?",
     ("cedar blocks", "dried lavender", "clove sachets", "freezing the wool")),
    ("Any idea for a stretch after sitting all day?", "The {v} is good after long sitting.",
     "Which exercise did you suggest for people who sit all day?",
     ("pigeon pose", "couch stretch", "cat-cow", "doorway lunge")),
    ("What should I read about the history of salt?", "{v} has a fine book on salt.",
     "Whose book about salt did you mention?",
     ("Mark Kurlansky", "Pierre Laszlo", "Samuel Adshead", "Robert Multhauf")),
    ("How do I get red wine out of linen?", "Put {v} on the wine stain at once.",
     "How did you say I should remove wine from linen?",
     ("soda water", "coarse salt", "boiling water", "white vinegar")),
    ("Which plant survives a dark bathroom?", "A {v} copes with a dark bathroom.",
     "Which plant did you name for the bathroom without light?",
     ("cast-iron plant", "snake plant", "zz plant", "parlour palm")),
)  # fmt: skip

# Told and asked in other languages.
ELSEWHERE = (
    ("Мою собаку зовут {v}.", "Как зовут собаку?", ("Шарик", "Бим", "Лайка", "Мухтар")),
    ("Я переехал в {v} и снял там квартиру.", "В какой город я переехал?",
     ("Казань", "Томск", "Самару", "Тверь")),
    ("我的猫叫{v}。", "我家猫的名字是什么？", ("小黑", "豆豆", "米粒", "大福")),
    ("我去年搬到了{v}。", "我搬到哪里去了？", ("成都", "厦门", "昆明", "大连")),
    ("Meine Schwester heiratet in {v}.", "Wo wird meine Schwester heiraten?",
     ("Bremen", "Passau", "Graz", "Luzern")),
    ("Mon médecin s'appelle le docteur {v}.", "Quel est le nom de mon médecin ?",
     ("Morel", "Lefèvre", "Garnier", "Chevalier")),
    ("私の誕生日は{v}です。", "誕生日はいつですか？", ("三月九日", "七月二日", "十月五日")),
    ("मेरी बहन {v} में रहती है।", "मेरी बहन कहाँ रहती है?", ("पुणे", "जयपुर", "लखनऊ", "भोपाल")),
    ("أختي تعمل في {v}.", "أين تعمل أختي؟", ("المستشفى", "المكتبة", "المطار", "البنك")),
    ("Ο αδερφός μου μένει στην {v}.", "Πού μένει ο αδερφός μου;", ("Πάτρα", "Καβάλα", "Σύρο")),
)  # fmt: skip

# Told in one language, asked in another.
ACROSS = (
    ("Meine Katze heißt {v}.", "What is the name of my cat?", ("Minka", "Strolch", "Felix")),
    ("Je travaille comme {v} depuis mars.", "What is my profession?",
     ("boulanger", "infirmier", "géomètre")),
    ("Soy alérgico a {v}.", "Which food am I allergic to?",
     ("los cacahuetes", "las fresas", "los mariscos")),
    ("私は{v}に引っ越しました。", "Which city did I move to?", ("仙台", "福岡", "札幌")),
    ("Моя сестра учится на {v}.", "What does my sister study?",
     ("ветеринара", "архитектора", "юриста")),
    ("I broke my {v} while skiing.", "Was habe ich mir beim Skifahren gebrochen?",
     ("wrist", "collarbone", "ankle")),
)  # fmt: skip

# Small talk: what it is about, and what is said about it.
THINGS = (
    "the oven", "a birthday cake", "my bicycle", "the printer", "a cover letter", "the balcony",
    "the tax form", "my sourdough", "a train ticket", "the lawn", "a spreadsheet", "my phone",
    "the dog", "a novel", "the car", "my knee", "the rent", "a wedding speech", "the laptop",
    "the boat", "the hallway", "a photo", "the attic", "my savings", "the football match",
    "a concert", "my lunch", "the groceries", "a hike", "a film", "the boiler", "the café",
    "a present", "the university", "my sister", "my neighbour", "the doctor", "a school play",
)  # fmt: skip
OPENERS = (
    "How do I fix {x}?", "Can you help me with {x}?", "I have a question about {x}.",
    "What would you do about {x}?", "Is it normal that {x} takes so long?",
    "Give me three ideas for {x}.", "Somebody told me to forget about {x}. Should I?",
    "I'm thinking about {x} again.", "Explain {x} to a child.", "What does {x} cost on average?",
)  # fmt: skip
REPLIES = (
    "Start with the simplest step and see whether it changes anything.",
    "It depends on how much time you want to put in.",
    "Most people find that a short list helps.", "I'd check the manual first.",
    "Take a photo before you begin, so that you can compare.",
    "There are three common reasons, and the first is by far the likeliest.",
    "A rule of thumb is to wait for a day and then look again.",
    "Ask somebody who has done it before.", "You could also borrow what you need.",
    "That sounds reasonable to me.", "Keep the receipt in case it doesn't work out.",
    "Prices vary a lot between towns and seasons.", "Measure twice and write the numbers down.",
    "If it rains, do the indoor part first.", "Small steps every week beat one long weekend.",
    "Don't worry too much about the details at this stage.",
    "Friends and family often have an opinion on that; listen, then decide yourself.",
)  # fmt: skip
ANSWERS = (
    "Noted, thanks for telling me.", "Good to know!", "Thank you, I'll keep that in mind.",
    "That's lovely to hear.", "Understood.", "Interesting, how did that come about?",
)  # fmt: skip
