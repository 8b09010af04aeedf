"""The verbs, with their irregular forms, and what they take beside them: objects of some kind, places, directions."""

from dataclasses import dataclass

from regard.demo.english_german.table import rows


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb; in `german` a bar follows a separable prefix, `third` is the form of `er` without that prefix."""

    english: str
    past: str
    german: str
    third: str
    participle: str
    auxiliary: str  # haben, sein
    frame: str  # which complements it takes: see clauses.py
    objects: tuple[str, ...]  # kinds of its object, or names of PLACES
    flags: frozenset[str]
    preposition: str  # of the object, in the frame `about`
    case: str  # which that preposition asks for


def _verb(english: str, german: str, frame: str, flags: str = "") -> Verb:
    """`call / called` and `an|rufen ruft angerufen`; `ist` before the participle stands for the auxiliary sein."""
    base, past = english.split(" / ")
    infinitive, third, *auxiliary, participle = german.split()
    kind, *objects = frame.split()
    preposition, _, case = kind.partition(":")
    return Verb(
        english=base,
        past=past,
        german=infinitive,
        third=third,
        participle=participle,
        auxiliary="sein" if auxiliary else "haben",
        frame="about" if case else kind,
        objects=tuple(objects),
        flags=frozenset(flags.split()),
        preposition=preposition if case else "",
        case=case,
    )


# Frames: `plain` (at most a place), `direct` (accusative), `dative`, `giving` (dative and accusative), `at` (a place),
# `going` (a goal), `putting` (accusative and goal); `auf:accusative` is the frame `about` with that preposition and case.
# Flags: `state` (no progressive, no time), `steady` (no progressive), `mishap` (nobody wants or orders it), `animal`
# (animals do it too), `manner` (slowly, alone, ...), `lasting` (for three years), `liked` (people like to do it),
# `shared` (with somebody), `favor` (for somebody), `ordered` (a common command).
VERBS = tuple(
    _verb(*row)
    for row in rows("""
    sleep / slept               schlafen schläft geschlafen         plain inside shade  animal liked
    work / worked               arbeiten arbeitet gearbeitet        plain inside  lasting manner
    laugh / laughed             lachen lacht gelacht                plain
    cry / cried                 weinen weint geweint                plain inside
    sing / sang                 singen singt gesungen               plain inside  manner liked
    dance / danced              tanzen tanzt getanzt                plain inside  manner liked
    play / played               spielen spielt gespielt             plain inside shore  animal manner liked
    study / studied             lernen lernt gelernt                plain inside  lasting liked
    wait / waited               warten wartet gewartet              plain front near inside  animal
    swim / swam                 schwimmen schwimmt ist geschwommen  plain water  animal manner liked
    get up / got up             auf|stehen steht ist aufgestanden   plain  animal
    wake up / woke up           auf|wachen wacht ist aufgewacht     plain  animal mishap
    fall asleep / fell asleep   ein|schlafen schläft ist eingeschlafen  plain  animal mishap
    come back / came back       zurück|kommen kommt ist zurückgekommen  plain  animal
    go shopping / went shopping  ein|kaufen kauft eingekauft        plain  liked
    watch TV / watched TV       fern|sehen sieht ferngesehen        plain  liked
    eat / ate                   essen isst gegessen                 direct food  animal liked shared ordered
    drink / drank               trinken trinkt getrunken            direct drink  liked shared ordered
    taste / tasted              probieren probiert probiert         direct food drink
    pay for / paid for          bezahlen bezahlt bezahlt            direct food drink
    spill / spilled             verschütten verschüttet verschüttet  direct drink  mishap
    read / read                 lesen liest gelesen                 direct text  liked shared favor ordered
    write / wrote               schreiben schreibt geschrieben      direct text  liked shared favor ordered
    buy / bought                kaufen kauft gekauft                direct food drink goods text  liked shared favor ordered
    sell / sold                 verkaufen verkauft verkauft         direct food goods text
    find / found                finden findet gefunden              direct thing clothes text animal  steady
    look for / looked for       suchen sucht gesucht                direct thing clothes animal person
    lose / lost                 verlieren verliert verloren         direct thing clothes  mishap
    need / needed               brauchen braucht gebraucht          direct goods  state
    have / had                  haben hat gehabt                    direct animal owned thing clothes  state
    like / liked                mögen mag gemocht                   direct person animal food drink building  state
    love / loved                lieben liebt geliebt                direct person animal  state
    know / knew                 kennen kennt gekannt                direct person building  state
    see / saw                   sehen sieht gesehen                 direct person animal building vehicle  state animal
    hear / heard                hören hört gehört                   direct person animal  state animal
    understand / understood     verstehen versteht verstanden       direct person text  state
    visit / visited             besuchen besucht besucht            direct person building  liked shared ordered
    carry / carried             tragen trägt getragen               direct thing furniture
    wear / wore                 tragen trägt getragen               direct clothes  liked
    open / opened               öffnen öffnet geöffnet              direct opened  ordered
    close / closed              schließen schließt geschlossen      direct opened  ordered
    wash / washed               waschen wäscht gewaschen            direct washed  ordered
    clean / cleaned             putzen putzt geputzt                direct cleaned  ordered
    repair / repaired           reparieren repariert repariert      direct vehicle machine fixed  liked shared favor
    take / took                 nehmen nimmt genommen               direct thing food text clothes  ordered
    forget / forgot             vergessen vergisst vergessen        direct thing clothes text  mishap
    hide / hid                  verstecken versteckt versteckt      direct thing text
    break / broke               zerbrechen zerbricht zerbrochen     direct fragile  mishap
    cook / cooked               kochen kocht gekocht                direct cooked  liked shared favor ordered
    bake / baked                backen backt gebacken               direct baked  liked shared favor
    draw / drew                 zeichnen zeichnet gezeichnet        direct drawn animal  liked shared favor
    build / built               bauen baut gebaut                   direct built
    feed / fed                  füttern füttert gefüttert           direct animal  liked shared
    ask / asked                 fragen fragt gefragt                direct person  ordered
    greet / greeted             grüßen grüßt gegrüßt                direct person
    meet / met                  treffen trifft getroffen            direct person
    call / called               an|rufen ruft angerufen             direct person  ordered
    invite / invited            ein|laden lädt eingeladen           direct person
    pick up / picked up         ab|holen holt abgeholt              direct person
    turn on / turned on         ein|schalten schaltet eingeschaltet  direct machine  ordered
    turn off / turned off       aus|schalten schaltet ausgeschaltet  direct machine  ordered
    put on / put on             an|ziehen zieht angezogen           direct worn  ordered
    take off / took off         aus|ziehen zieht ausgezogen         direct worn
    try on / tried on           an|probieren probiert anprobiert    direct clothes
    look at / looked at         an|sehen sieht angesehen            direct thing animal building
    tidy up / tidied up         auf|räumen räumt aufgeräumt         direct room
    throw away / threw away     weg|werfen wirft weggeworfen        direct text clothes food
    unpack / unpacked           aus|packen packt ausgepackt         direct packed
    bring along / brought along  mit|bringen bringt mitgebracht     direct food drink thing
    help / helped               helfen hilft geholfen               dative person  liked ordered
    thank / thanked             danken dankt gedankt                dative person
    follow / followed           folgen folgt ist gefolgt            dative person animal  animal
    answer / answered           antworten antwortet geantwortet     dative person
    trust / trusted             vertrauen vertraut vertraut         dative person  state
    listen to / listened to     zu|hören hört zugehört              dative person  ordered
    give / gave                 geben gibt gegeben                  giving thing food text clothes  ordered
    send / sent                 schicken schickt geschickt          giving text sent
    show / showed               zeigen zeigt gezeigt                giving thing text clothes  ordered
    bring / brought             bringen bringt gebracht             giving food drink thing text  ordered
    lend / lent                 leihen leiht geliehen               giving thing text owned
    offer / offered             an|bieten bietet angeboten          giving food drink
    wait for / waited for       warten wartet gewartet              auf:accusative person ride  ordered
    think of / thought of       denken denkt gedacht                an:accusative person
    dream of / dreamed of       träumen träumt geträumt             von:dative person animal
    talk with / talked with     sprechen spricht gesprochen         mit:dative person  liked
    talk about / talked about   sprechen spricht gesprochen         über:accusative person text animal
    play with / played with     spielen spielt gespielt             mit:dative toy animal  liked
    look after / looked after   auf|passen passt aufgepasst         auf:accusative person animal  ordered
    sit / sat                   sitzen sitzt gesessen               at seat shade inside  animal
    stand / stood               stehen steht gestanden              at front behind near  animal
    lie / lay                   liegen liegt gelegen                at couch shade shore  animal
    live / lived                wohnen wohnt gewohnt                at home town  lasting state
    stay / stayed               bleiben bleibt ist geblieben        at inside shore  animal steady
    go / went                   gehen geht ist gegangen             going into to through over  manner ordered
    run / ran                   laufen läuft ist gelaufen           going into to through over  animal manner
    drive / drove               fahren fährt ist gefahren           going to toward over  manner
    come / came                 kommen kommt ist gekommen           going into to toward  animal
    put / put                   legen legt gelegt                   putting flat  ordered
    place / placed              stellen stellt gestellt             putting upright
    """)
)

# These stand apart, since a pattern of their own asks for each.
BE = _verb("be / was", "sein ist ist gewesen", "predicate", "state")
COST = _verb("cost / cost", "kosten kostet gekostet", "predicate", "state")
ARRIVING = (
    _verb("arrive / arrived", "an|kommen kommt ist angekommen", "at"),
    _verb("depart / departed", "ab|fahren fährt ist abgefahren", "plain"),
)
BELONG = _verb("belong to / belonged to", "gehören gehört gehört", "dative", "state")
SAYING = tuple(
    _verb(*row)
    for row in rows("""
    know / knew         wissen weiß gewusst       plain  state
    believe / believed  glauben glaubt geglaubt   plain  state
    say / said          sagen sagt gesagt         plain  state
    hope / hoped        hoffen hofft gehofft      plain  state
    """)
)
ASKING = (SAYING[0], _verb("ask / asked", "fragen fragt gefragt", "plain"))
INTENDING = tuple(
    _verb(*row)
    for row in rows("""
    try / tried         versuchen versucht versucht     plain
    promise / promised  versprechen verspricht versprochen  plain
    forget / forgot     vergessen vergisst vergessen    plain
    """)
)
