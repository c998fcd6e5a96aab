"""Forgeries of results of `reach`."""

from forgery import add, drop, header, put, weights


def reach(of):
    header(of)
    token_at = lambda index: lambda document: document["unreachable"][index]["token"]
    number = lambda document, kind: [i for i, proof in enumerate(document["proofs"]) if proof["answer"] == kind]

    def bound(kind, end, change, answer="yes", which=0):
        """A bound of the first token with an answer, with the entries that repeat it."""
        def edit(document):
            token = number(document, answer)[which]
            document[kind][end][token] = change(document[kind][end][token])
            for entry in document["nearest"]:
                entry["lead_at_least"] = document["lead"]["lower"][entry["token"]]
                entry["lead_at_most"] = document["lead"]["upper"][entry["token"]]
            for entry in document["unreachable"] + document["undecided"]:
                entry["lead_at_most"] = document["lead"]["upper"][entry["token"]]
        return edit

    def of_proof(answer, change, which=0):
        def edit(document):
            change(document["proofs"][number(document, answer)[which]])
        return edit

    def loser(change, which=0):
        return lambda document: change(document["unreachable"][which])

    def unreachable(document):
        """The first reachable token becomes unreachable, with its own weights."""
        token = number(document, "yes")[0]
        proof = document["proofs"][token]
        document["unreachable"].append({
            "token": token, "name": None, "lead_at_most": document["lead"]["upper"][token],
            "weights": proof.get("weights", []), "without_ball": "undecided", "without_ball_weights": []})
        document["proofs"][token] = {"answer": "no"}
        document["reachable"] -= 1

    def reachable(document):
        entry = document["unreachable"].pop(0)
        document["proofs"][entry["token"]] = {"answer": "yes", "witness": "own_direction", "weights": entry["weights"]}
        document["lead"]["lower"][entry["token"]] = 1e-9
        document["reachable"] += 1

    def open_token(document):
        """An open token, of which bounds are stated all the same."""
        token = number(document, "yes")[0]
        document["proofs"][token] = {"answer": "open"}
        document["reachable"] -= 1
        document["decided"] -= 1
        document["left_out"]["tokens"] += 1
        document["complete"] = False
        document["nearest"] = [entry for entry in document["nearest"] if entry["token"] != token]

    def undecided(document):
        token = number(document, "yes")[0]
        document["undecided"].append({
            "token": token, "name": None, "lead_at_most": document["lead"]["upper"][token], "weights": [],
            "without_ball": "undecided", "without_ball_weights": []})
        document["proofs"][token] = {"answer": "undecided"}
        document["reachable"] -= 1
        document["nearest"] = [entry for entry in document["nearest"] if entry["token"] != token]

    lead_of_loser = bound("lead", "lower", lambda x: 50.0, "no")
    of.failed("an unreachable token leads by 50", "lead.lower", lead_of_loser)
    of.failed("an unreachable token has a probability of 0.999999", "max_probability.lower", lead_of_loser,
              bound("max_probability", "lower", lambda x: 0.999999, "no"))
    of.failed("a probability of an unreachable token raised", "max_probability.lower",
              bound("max_probability", "lower", lambda x: 0.75, "no"))
    of.failed("a token reachable after all", "proofs", reachable)
    of.failed("a token unreachable after all", "proofs", unreachable)
    of.failed("a lead raised", "lead.lower", bound("lead", "lower", lambda x: x * (1 + 1e-9)))
    of.failed("every lead raised", "lead.lower", *[bound("lead", "lower", lambda x: x * 1.5 + 1, "yes", k) for k in range(3)])
    of.failed("a largest lead lowered", "lead.upper", bound("lead", "upper", lambda x: 0.5 * x))
    of.failed("a largest lead below 0", "lead.upper", bound("lead", "upper", lambda x: -1.0))
    of.failed("a largest lead of an unreachable token lowered", "lead.upper", bound("lead", "upper", lambda x: x - 0.1, "no"))
    of.failed("a least lead of nothing", "lead.lower", bound("lead", "lower", lambda x: None))
    of.failed("a least lead below 0 of a reachable token", "lead.lower", bound("lead", "lower", lambda x: -1.0))
    of.failed("an open token has a lead of 9", "lead.lower", open_token, put("lead.lower[0]", 9.0))
    of.failed("an open token has no lead", "lead", open_token, put("lead.lower[0]", None), put("lead.upper[0]", -1.0))
    of.failed("an open token has a probability", "max_probability", open_token, put("max_probability.lower[0]", 0.99))
    of.failed("an open token has no probability", "max_probability", open_token, put("max_probability.upper[0]", 1e-9),
              put("max_probability.lower[0]", 0.0))
    of.failed("an undecided token has no lead", "lead.upper", undecided, bound("lead", "upper", lambda x: -1.0, "undecided"))
    of.failed("an undecided token has a lead", "lead.lower", undecided, bound("lead", "lower", lambda x: 9.0, "undecided"))
    of.failed("a witness outside the ball", "witness", of_proof("yes", lambda proof: proof.update(witness=[9.0, -9.0, 5.0])),
              bound("lead", "lower", lambda x: 2 * x))
    of.failed("a witness of another token", "witness", of_proof("yes", lambda proof: proof.update(witness=[0.0, 0.0, 0.0])))
    of.failed("a witness of another width", "witness", of_proof("yes", lambda proof: proof.update(witness=[0.5])))
    of.failed("no witness", "proofs", of_proof("yes", lambda proof: proof.pop("witness")))
    of.malformed("an unknown witness", "witness", of_proof("yes", lambda proof: proof.update(witness="somewhere")))
    of.unproved("a witness elsewhere", "lead.lower", of_proof("yes", lambda proof: proof.update(witness="elsewhere")),
                put("certificates", "nowhere"))
    of.failed("weights on the token itself", "weights", loser(lambda entry: entry.update(
        weights=weights("token", (entry["token"], 1.0)), lead_at_most=0.0)), bound("lead", "upper", lambda x: 0.0, "no"))
    of.failed("a weight more on the token itself", "weights",
              loser(lambda entry: entry["weights"].append({"token": entry["token"], "weight": 1e9})),
              bound("lead", "upper", lambda x: 0.0 if x < 0 else x, "no"))
    of.malformed("negative weights", "weights", loser(lambda entry: entry["weights"][0].update(weight=-0.5)))
    of.failed("other weights", "weights", loser(lambda entry: entry.update(weights=weights("token", (6, 1.0)))))
    of.failed("weights of sum 0", "weights", loser(lambda entry: entry.update(weights=weights("token", (0, 0.0)))))
    of.failed("no weights", "weights", loser(lambda entry: entry.update(weights=[])))
    of.failed("a weight on a token that is not there", "weights",
              loser(lambda entry: entry.update(weights=weights("token", (99, 1.0)))))
    of.failed("a token weighed twice", "weights",
              loser(lambda entry: entry["weights"].append(dict(entry["weights"][0]))))
    of.failed("unreachable without the ball too", "without_ball", loser(lambda entry: entry.update(
        without_ball="no", without_ball_weights=weights("token", (0, 1.0)))))
    of.failed("reachable without the ball", "without_ball", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [1.0, 0.0, 0.0], "height": 1.0})))
    of.failed("reachable without the ball at nothing", "without_ball", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [0.0, 0.0, 0.0], "height": 1e-300})))
    of.malformed("reachable without the ball at a height below 0", "height", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [1.0, 0.0, 0.0], "height": -1.0})))
    of.failed("a token listed twice", "unreachable", lambda document: document["unreachable"].append(document["unreachable"][0]))
    of.failed("an unreachable token left out", "unreachable", drop("unreachable[0]"))
    of.failed("a token that is not there is unreachable", "unreachable", loser(lambda entry: entry.update(token=99)))
    of.unproved("a name of a token", "name", loser(lambda entry: entry.update(name="the")))
    of.failed("another lead than the token's", "lead_at_most", loser(lambda entry: entry.update(lead_at_most=-7.0)))
    of.failed("more reachable tokens", "reachable", put("reachable", lambda x: x + 1))
    of.failed("other tokens unreachable without the ball", "unreachable_without_ball", put("unreachable_without_ball", lambda x: x + 1))
    of.failed("more decided tokens", "decided", put("decided", lambda x: x + 1))
    of.failed("another number of tokens", "tokens", put("tokens", lambda x: x + 1))
    of.failed("another width", "width", put("width", lambda x: x + 1))
    of.failed("a proof left out", "proofs", drop("proofs[-1]"))
    of.malformed("an unknown answer", "answer", put("proofs[0].answer", "perhaps"))
    of.failed("a probability raised", "max_probability.lower", bound("max_probability", "lower", lambda x: x + 0.5 * (1 - x)))
    of.failed("a largest probability lowered", "max_probability.upper", bound("max_probability", "upper", lambda x: 0.9 * x))
    of.failed("a largest probability of an unreachable token lowered", "max_probability.upper",
              bound("max_probability", "upper", lambda x: 0.5 * x, "no"))
    of.malformed("a probability above 1", "max_probability", put("max_probability.upper[0]", 1.5))
    of.malformed("a probability below 0", "max_probability", put("max_probability.lower[0]", -0.5))
    of.failed("a lower end above the upper one", "max_probability", bound("max_probability", "upper", lambda x: 1e-9))
    of.failed("tokens whose probabilities were not worked out", "refined", add("max_probability.refined", lambda d: d["tokens"] + 5))
    of.failed("a point of probability outside the ball", "max_probability.lower",
              of_proof("yes", lambda proof: proof.update(probability_point=[30.0, -30.0, 9.0])),
              bound("max_probability", "lower", lambda x: 1 - 1e-9))
    of.malformed("probabilities below 0", "probability_weights",
                 of_proof("yes", lambda proof: proof.update(probability_weights=weights("token", (0, 1.0), (1, -0.5)))))
    of.failed("entropy of a token counted twice", "max_probability.upper", of_proof(
        "yes", lambda proof: proof.update(probability_weights=weights("token", *[(0, 1.0)] * 64))),
        bound("max_probability", "upper", lambda x: 0.1))
    of.failed("a larger tie", "tie", put("tie", lambda x: 1e6 * x))
    of.failed("a tie of 50, and all is unreachable", "tie", put("tie", 50.0), unreachable)
    of.malformed("a tie below 0", "tie", put("tie", -1.0))
    of.malformed("a tolerance of 1e9", "tolerance", put("tolerance", 1e9), put("tie", 1e9), unreachable)
    of.malformed("a negative tolerance", "tolerance", put("tolerance", -1.0))
    of.failed("a larger scale", "scale", put("scale", lambda x: 1.01 * x))
    of.failed("another stretch", "without_ball.stretch", put("without_ball.stretch", 1e-30))
    of.malformed("a stretch below 0", "stretch", put("without_ball.stretch", -1.0))
    of.failed("a larger tie without the ball", "without_ball.tie", put("without_ball.tie", 5.0))
    of.failed("another kind of norm", "norm.kind", put("norm.kind", "rms"))
    of.malformed("an unknown kind of norm", "norm.kind", put("norm.kind", "batch"))
    of.failed("another eps", "norm.eps", put("norm.eps", 0.5))
    of.failed("eps 0 of a ball", "sphere", put("norm.eps", 0.0), put("sphere", True))
    of.failed("a sphere of a ball", "sphere", put("sphere", True))
    of.failed("a soft cap that is not there", "soft_cap", put("soft_cap", 30.0))
    of.malformed("a negative soft cap", "soft_cap", put("soft_cap", -1.0))
    of.failed("another factor of logits", "logit_scale", put("logit_scale", 2.0))
    of.failed("no bias", "unembedding_bias", put("unembedding_bias", lambda x: not x))
    of.unproved("a note", "notes", add("notes", "token 5 has a probability of 1"))
    of.failed("tied to a table", "tied", put("tied", True))
    of.failed("a name of a norm", "norm.name", put("norm.name", "ln_f"))
    of.failed("left out although complete", "left_out", put("left_out.tokens", 3))
    of.failed("complete although left out", "complete", open_token, put("complete", True))
    of.failed("nearest tokens in another order", "nearest", put("nearest", lambda old: old[::-1]))
    of.failed("an unreachable token is nearest", "nearest", lambda document: document["nearest"].append({
        "token": token_at(0)(document), "name": None, "lead_at_least": None, "lead_at_most": document["unreachable"][0]["lead_at_most"]}))
    of.failed("another lead of a nearest token", "nearest", put("nearest[0].lead_at_most", lambda x: 2 * x))
    of.failed("the nearest token left out", "nearest", drop("nearest[0]"))
    of.unproved("a name of a nearest token", "name", put("nearest[0].name", "the"))


def reach_rms(of):
    def named(token, lower, probability):
        def edit(document):
            document["lead"]["lower"][token] = lower
            document["max_probability"]["lower"][token] = probability
        return edit
    of.failed("the inner token has a probability of 0.999999", "lead.lower", named(4, 50.0, 0.999999))
    of.failed("a token beats all others by 2", "lead.lower", named(0, 2.0, 0.9))


def reach_sphere(of):
    of.failed("a ball of a sphere", "sphere", put("sphere", False))
    of.failed("an eps of a sphere", "eps", put("norm.eps", 1e-5))
    of.malformed("a member that tokens do not have", "ends", lambda document: document["unreachable"][0].update(ends=[0, 1]))
    of.failed("leads raised", "lead.lower", lambda document: document["lead"].update(
        lower=[x and x + 0.1 for x in document["lead"]["lower"]]))
    of.failed("largest leads lowered", "lead.upper", lambda document: document["lead"].update(
        upper=[x - 1 for x in document["lead"]["upper"]]))
    of.failed("a sphere's point at 0", "witness", lambda document: next(
        proof for proof in document["proofs"] if proof["answer"] == "yes").update(witness=[0.0, 0.0, 0.0]))


def reach_tiny(of):
    """Products of such rows with this witness underflow to 0."""
    def leads(document):
        document["proofs"][4] = {"answer": "yes", "witness": [1e-300, 1e-300]}
        document["lead"]["lower"][4] = 5e-324
        document["reachable"] = 5
        document["unreachable"], document["unreachable_without_ball"] = [], 0

    of.failed("the inner token leads by what underflows", "proofs", leads)
    of.failed("no token can lead", "lead.upper", put("lead.upper", [0.0] * 5))


def reach_model(of):
    header(of)
    for name, value in (("kind", "rms"), ("eps", 0.1), ("name", "transformer.h.0.ln_1")):
        of.failed(f"another {name} of the norm", f"norm.{name}", put(f"norm.{name}", value))
    of.failed("a soft cap", "soft_cap", put("soft_cap", 5.0))
    of.failed("another factor of logits", "logit_scale", put("logit_scale", 0.5))
    of.failed("tied or not", "tied", put("tied", lambda x: not x))
    of.failed("a bias or not", "unembedding_bias", put("unembedding_bias", lambda x: not x))
    of.unproved("a name of a token", "name", put("nearest[0].name", "zebra"))
    of.unproved("names of tokens swapped", "name", put("nearest[0].name", "a"), put("nearest[1].name", "b"))
    of.unproved("a note", "notes", add("notes", "every token is reachable by some text"))
    of.failed("another source", "source", put("source", "gpt-5"))
    of.failed("every lead raised", "lead.lower", lambda document: document["lead"].update(
        lower=[x and 1.0001 * x for x in document["lead"]["lower"]]))
    of.failed("every largest lead lowered", "lead.upper", lambda document: document["lead"].update(
        upper=[0.5 * x for x in document["lead"]["upper"]]))
    of.failed("every probability raised", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[1 - 1e-12] * document["tokens"]))
    of.failed("every largest probability lowered", "max_probability.upper", lambda document: document["max_probability"].update(
        upper=[0.5 * x for x in document["max_probability"]["upper"]]))
    of.failed("witnesses of other tokens", "lead.lower", lambda document: document.update(
        proofs=document["proofs"][1:] + document["proofs"][:1]))


def reach_cap(of):
    for value in (0.0, 1.0, 1e9):
        of.failed(f"a soft cap of {value}", "soft_cap", put("soft_cap", value))
    of.failed("probabilities behind the cap raised", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[min(1.0, 1.2 * x) for x in document["max_probability"]["lower"]]))
    of.failed("probabilities without the cap", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[0.999] * document["tokens"]))
    of.unproved("largest probabilities behind the cap", "max_probability.upper", lambda document: document["max_probability"].update(
        upper=[0.5 * x for x in document["max_probability"]["upper"]]))
    of.failed("leads behind the cap", "lead.lower", lambda document: document["lead"].update(
        lower=[x and x + 1 for x in document["lead"]["lower"]]))
