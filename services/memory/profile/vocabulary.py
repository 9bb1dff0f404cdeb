"""Vocabulary of the rules that extract facts."""

ROLES = """
    engineer developer programmer designer teacher lecturer professor researcher scientist analyst
    manager director consultant accountant lawyer attorney doctor physician surgeon nurse dentist
    therapist psychologist psychiatrist pharmacist vet veterinarian paramedic architect electrician
    plumber carpenter mechanic technician driver pilot chef cook baker waiter waitress barista
    bartender farmer gardener writer author editor journalist reporter translator interpreter
    photographer musician singer composer actor actress artist illustrator painter dancer student
    undergraduate postdoc intern apprentice librarian secretary assistant administrator
    receptionist salesperson cashier founder co-founder entrepreneur freelancer contractor officer
    soldier firefighter policeman policewoman detective judge paralegal economist mathematician
    physicist chemist biologist geologist historian philosopher linguist statistician tutor coach
    trainer hairdresser tailor butcher fisherman sailor astronaut recruiter marketer planner
    surveyor banker broker trader auditor actuary midwife carer nanny housewife homemaker pensioner
    ceo cto cfo coo sysadmin dba owner
""".split()

RELATIVES = """
    wife husband spouse partner girlfriend boyfriend fiancé fiancée fiance fiancee mother mom mum
    father dad parents sister brother siblings son daughter baby child kid children kids grandmother
    grandma grandfather grandpa grandson granddaughter aunt uncle cousin niece nephew stepmother
    stepfather stepson stepdaughter mother-in-law father-in-law sister-in-law brother-in-law
    godmother godfather
""".split()

# Relatives that one can have several of.
CHILDREN = """
    kids kid children child sons son daughters daughter brothers brother sisters sister siblings
    sibling grandchildren grandchild twins
""".split()

ANIMALS = """
    dog puppy cat kitten horse pony rabbit bunny hamster mouse rat ferret parrot budgie canary
    bird chicken hen duck goat sheep cow pig donkey turtle tortoise snake lizard gecko iguana fish
    goldfish hedgehog chinchilla
""".split()

LANGUAGES = """
    afrikaans albanian amharic arabic armenian azerbaijani basque belarusian bengali bosnian
    bulgarian burmese cantonese catalan chinese croatian czech danish dutch english esperanto
    estonian farsi filipino finnish flemish french frisian galician georgian german greek gujarati
    hausa hebrew hindi hungarian icelandic igbo indonesian irish italian japanese kannada kazakh
    khmer korean kurdish kyrgyz lao latin latvian lithuanian luxembourgish macedonian malay
    malayalam maltese mandarin marathi mongolian nepali norwegian pashto persian polish portuguese
    punjabi quechua romanian romansh russian sanskrit serbian sinhala slovak slovenian slovene
    somali spanish swahili swedish tagalog tajik tamil tatar telugu thai tibetan tigrinya turkish
    turkmen ukrainian urdu uzbek vietnamese welsh xhosa yiddish yoruba zulu
""".split()

MONTHS = """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
""".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()

DIETS = (
    *("vegan", "vegetarian", "pescatarian", "flexitarian", "kosher", "halal", "teetotal"),
    *("gluten-free", "dairy-free", "lactose-intolerant", "lactose intolerant"),
    *("coeliac", "celiac", "diabetic"),
)

# Words that cannot begin a thing that somebody likes, has or works on.
NO_THING = frozenset(
    """
    it this that these those you your yours him her his them their they he she how what when where
    why who which if to the me us our we i my mine one some all everything nothing something
    anything every each both here there being having doing not no so very just as by for from
    with without of on at in into about than then
    """.split()
)
# Words that cannot begin a later item of a list, since they begin a new clause.
NO_FURTHER_THING = NO_THING | frozenset(
    """
    am is are was were be been have has had do does did can could will would should must may might
    live lives work works want wants need needs like love hate enjoy prefer use go get make take
    think know also often usually always never sometimes really now currently please thanks
    but because since although though would've i'm i've i'd i'll it's that's
    """.split()
)
# Words that cannot be a name in text without capitals.
NO_NAME = NO_THING | frozenset(
    """
    a an and or but late back later tomorrow today tonight asap soon maybe crazy if on in at hard
    unusual common spelled spelt pronounced short long different important irrelevant unknown
    secret private too fear pain hope peace poverty debt constant total
    """.split()
)
