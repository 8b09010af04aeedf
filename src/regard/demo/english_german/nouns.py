"""The nouns, with what cannot be computed: genders, plurals, and the kinds which keep sentences sensible."""

from dataclasses import dataclass

from regard.demo.english_german.table import rows


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun; `plural` is empty for what cannot be counted."""

    english: str
    plural: str
    german: str
    gender: str  # m, f, n
    german_plural: str
    kinds: frozenset[str]


def _noun(english: str, german: str, kinds: str) -> Noun:
    """`woman women` and `Frau f Frauen`; a lonely English form cannot be counted."""
    singular, _, plural = english.partition(" ")
    german_singular, gender, *german_plural = german.split()
    return Noun(singular, plural, german_singular, gender, "".join(german_plural), frozenset(kinds.split()))


# The first kind is the noun's category. `weak` nouns take -(e)n in every case but the nominative singular; `kin` can be
# "my", `parent` only one at a time; `she` is a neuter noun for a female.
NOUNS = tuple(
    _noun(*row)
    for row in rows("""
    man men                  Mann m Männer                    person adult
    woman women              Frau f Frauen                    person adult
    child children           Kind n Kinder                    person kin young
    boy boys                 Junge m Jungen                   person weak young
    girl girls               Mädchen n Mädchen                person she young
    teacher teachers         Lehrer m Lehrer                  person adult kin
    student students         Student m Studenten              person weak
    doctor doctors           Arzt m Ärzte                     person adult kin
    friend friends           Freund m Freunde                 person adult kin
    neighbor neighbors       Nachbar m Nachbarn               person adult kin weak
    colleague colleagues     Kollege m Kollegen               person adult kin weak
    guest guests             Gast m Gäste                     person adult kin
    mother mothers           Mutter f Mütter                  person adult kin parent
    father fathers           Vater m Väter                    person adult kin parent
    brother brothers         Bruder m Brüder                  person adult kin
    sister sisters           Schwester f Schwestern           person adult kin
    son sons                 Sohn m Söhne                     person kin young
    daughter daughters       Tochter f Töchter                person kin young
    aunt aunts               Tante f Tanten                   person adult kin
    uncle uncles             Onkel m Onkel                    person adult kin
    farmer farmers           Bauer m Bauern                   person adult weak
    baker bakers             Bäcker m Bäcker                  person adult
    painter painters         Maler m Maler                    person adult
    singer singers           Sänger m Sänger                  person adult
    waiter waiters           Kellner m Kellner                person adult
    lawyer lawyers           Anwalt m Anwälte                 person adult
    tourist tourists         Tourist m Touristen              person adult weak
    nurse nurses             Krankenschwester f Krankenschwestern  person adult
    king kings               König m Könige                   person adult
    queen queens             Königin f Königinnen             person adult
    dog dogs                 Hund m Hunde                     animal young
    cat cats                 Katze f Katzen                   animal young
    horse horses             Pferd n Pferde                   animal young
    cow cows                 Kuh f Kühe                       animal
    bird birds               Vogel m Vögel                    animal
    mouse mice               Maus f Mäuse                     animal
    bear bears               Bär m Bären                      animal weak
    monkey monkeys           Affe m Affen                     animal weak
    pig pigs                 Schwein n Schweine               animal
    duck ducks               Ente f Enten                     animal
    apple apples             Apfel m Äpfel                    food piece sugared
    pear pears               Birne f Birnen                   food piece sugared
    banana bananas           Banane f Bananen                 food piece sugared
    tomato tomatoes          Tomate f Tomaten                 food piece cooked
    potato potatoes          Kartoffel f Kartoffeln           food piece cooked
    egg eggs                 Ei n Eier                        food piece cooked
    sausage sausages         Wurst f Würste                   food piece cooked
    cookie cookies           Keks m Kekse                     food piece sugared baked
    cake cakes               Kuchen m Kuchen                  food piece sugared baked
    soup soups               Suppe f Suppen                   food cooked brewed
    bread                    Brot n                           food baked
    cheese                   Käse m                           food
    coffee                   Kaffee m                         drink brewed
    tea                      Tee m                            drink brewed sugared
    milk                     Milch f                          drink brewed
    water                    Wasser n                         drink brewed
    juice                    Saft m                           drink sugared
    beer                     Bier n                           drink
    wine                     Wein m                           drink sugared
    book books               Buch n Bücher                    text flat sent
    letter letters           Brief m Briefe                   text flat
    newspaper newspapers     Zeitung f Zeitungen              text flat
    magazine magazines       Zeitschrift f Zeitschriften      text flat sent
    novel novels             Roman m Romane                   text flat sent
    poem poems               Gedicht n Gedichte               text
    car cars                 Auto n Autos                     vehicle landmark washed owned goods
    bicycle bicycles         Fahrrad n Fahrräder              vehicle washed owned goods
    bus buses                Bus m Busse                      vehicle ride landmark line
    train trains             Zug m Züge                       vehicle ride line
    ship ships               Schiff n Schiffe                 vehicle ride
    taxi taxis               Taxi n Taxis                     vehicle landmark
    truck trucks             Lastwagen m Lastwagen            vehicle landmark washed owned goods
    boat boats               Boot n Boote                     vehicle washed owned goods
    coat coats               Mantel m Mäntel                  clothes worn flat washed goods
    hat hats                 Hut m Hüte                       clothes flat goods
    shirt shirts             Hemd n Hemden                    clothes worn flat washed goods
    dress dresses            Kleid n Kleider                  clothes worn flat washed goods
    jacket jackets           Jacke f Jacken                   clothes worn flat washed goods
    skirt skirts             Rock m Röcke                     clothes worn flat washed goods
    bag bags                 Tasche f Taschen                 thing upright opened packed goods
    suitcase suitcases       Koffer m Koffer                  thing upright opened packed goods
    box boxes                Kiste f Kisten                   thing upright opened packed goods
    bottle bottles           Flasche f Flaschen               thing upright opened fragile goods
    cup cups                 Tasse f Tassen                   thing upright fragile goods
    glass glasses            Glas n Gläser                    thing upright fragile goods
    plate plates             Teller m Teller                  thing upright fragile goods
    lamp lamps               Lampe f Lampen                   thing upright machine goods
    radio radios             Radio n Radios                   thing upright machine goods
    computer computers       Computer m Computer              thing upright machine goods
    phone phones             Telefon n Telefone               thing machine goods
    camera cameras           Kamera f Kameras                 thing machine flat sent goods
    clock clocks             Uhr f Uhren                      thing fixed sent goods
    key keys                 Schlüssel m Schlüssel            thing flat goods
    knife knives             Messer n Messer                  thing flat goods
    spoon spoons             Löffel m Löffel                  thing flat goods
    umbrella umbrellas       Regenschirm m Regenschirme       thing flat goods
    picture pictures         Bild n Bilder                    thing drawn sent goods
    ball balls               Ball m Bälle                     thing toy sent goods
    toy toys                 Spielzeug n Spielzeuge           thing toy sent goods
    doll dolls               Puppe f Puppen                   thing toy flat sent goods
    guitar guitars           Gitarre f Gitarren               thing gift fixed goods
    ring rings               Ring m Ringe                     thing flat sent goods
    flower flowers           Blume f Blumen                   thing gift drawn goods
    gift gifts               Geschenk n Geschenke             thing packed flat goods
    table tables             Tisch m Tische                   furniture surface goods
    desk desks               Schreibtisch m Schreibtische     furniture surface goods
    chair chairs             Stuhl m Stühle                   furniture seat goods fixed
    bench benches            Bank f Bänke                     furniture seat goods fixed
    sofa sofas               Sofa n Sofas                     furniture seat couch goods
    bed beds                 Bett n Betten                    furniture couch goods fixed
    shelf shelves            Regal n Regale                   furniture surface goods
    cupboard cupboards       Schrank m Schränke               furniture opened goods fixed
    door doors               Tür f Türen                      part opened fixed
    window windows           Fenster n Fenster                part opened cleaned fixed
    house houses             Haus n Häuser                    building inside home landmark drawn built
    castle castles           Schloss n Schlösser              building inside home landmark drawn built
    hotel hotels             Hotel n Hotels                   building inside home landmark built
    school schools           Schule f Schulen                 building inside public landmark built
    hospital hospitals       Krankenhaus n Krankenhäuser      building inside public landmark built
    church churches          Kirche f Kirchen                 building inside public landmark drawn built
    museum museums           Museum n Museen                  building inside public landmark
    theater theaters         Theater n Theater                building inside public landmark
    library libraries        Bibliothek f Bibliotheken        building inside public landmark
    restaurant restaurants   Restaurant n Restaurants         building inside public landmark
    supermarket supermarkets  Supermarkt m Supermärkte        building inside public landmark
    bakery bakeries          Bäckerei f Bäckereien            building inside public landmark
    station stations         Bahnhof m Bahnhöfe               building public landmark
    office offices           Büro n Büros                     room inside cleaned
    kitchen kitchens         Küche f Küchen                   room inside cleaned
    room rooms               Zimmer n Zimmer                  room inside cleaned
    garden gardens           Garten m Gärten                  outdoors inside open drawn
    park parks               Park m Parks                     outdoors inside open public
    forest forests           Wald m Wälder                    outdoors inside open drawn
    city cities              Stadt f Städte                   outdoors inside open home settled
    village villages         Dorf n Dörfer                    outdoors inside open home settled
    lake lakes               See m Seen                       outdoors shore water drawn
    river rivers             Fluss m Flüsse                   outdoors shore water drawn
    beach beaches            Strand m Strände                 outdoors shore
    tree trees               Baum m Bäume                     plant shade landmark drawn
    bridge bridges           Brücke f Brücken                 road shade crossed drawn built
    street streets           Straße f Straßen                 road crossed
    """)
)
