"""A second, independent import of LiteLLM's price map: in Python's decimals, of which none is rounded
but to a pico-unit at the end.

usage: twin.py MAP < OURS
Lines of OURS, fields separated by tabs:
  rate  MODEL TIER ABOVE  and thirteen prices in pico-units, "-" for none
  round MODEL FIELD WRITTEN TAKEN
Says on stdout how much it compared; exits 1 if anything differs, with the first differences.
"""

import json
import re
import sys
from decimal import ROUND_HALF_EVEN, Decimal, getcontext

getcontext().prec = 200

KEYS = [
    "input", "cached_input", "cache_write", "cache_write_1h", "input_audio", "input_image", "input_video",
    "cached_input_audio", "cached_input_image",
    "output", "reasoning", "output_audio", "output_image", "output_video", "per_request",
]
FIELDS = {
    "input_cost_per_token": "input",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "input_cost_per_audio_token": "input_audio",
    "input_cost_per_image_token": "input_image",
    "input_cost_per_video_token": "input_video",
    "cache_read_input_audio_token_cost": "cached_input_audio",
    "cache_read_input_image_token_cost": "cached_input_image",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "output_cost_per_audio_token": "output_audio",
    "output_cost_per_image_token": "output_image",
    "output_cost_per_video_token": "output_video",
    "input_cost_per_request": "per_request",
}
TIERS = {None: "standard", "batches": "batch"}
FORM = re.compile(
    "(" + "|".join(FIELDS) + r")"
    r"(?:_above_(?P<thousands>\d+)k_tokens)?"
    r"(?:_(?P<tier>batches|priority|flex|balanced|ultrafast|decisions))?"
)
LIKE = {
    "cached_input": "input", "cache_write": "input", "cache_write_1h": "cache_write", "input_image": "input", "input_video": "input",
    "cached_input_audio": "input_audio", "cached_input_image": "cached_input",
    "reasoning": "output",
}

rounded = {}


def pico(model, field, number):
    exact = number.scaleb(12)
    whole = exact.to_integral_value(rounding=ROUND_HALF_EVEN)
    if whole != exact:
        rounded[model, field, number] = int(whole)
    return int(whole)


def named(model, fields):
    """Prices by (tier, above) and key."""
    sheets = {}
    for field, number in fields.items():
        form = FORM.fullmatch(field)
        if not form or number is None:
            continue
        tier = TIERS.get(form["tier"], form["tier"])
        above = int(form["thousands"] or 0) * 1000
        sheets.setdefault((tier, above), {})[FIELDS[form[1]]] = pico(model, field, number)
    if "input_cost_per_token_cache_hit" in fields and "cache_read_input_token_cost" not in fields:
        number = fields["input_cost_per_token_cache_hit"]
        sheet = sheets.setdefault(("standard", 0), {})
        sheet["cached_input"] = pico(model, "input_cost_per_token_cache_hit", number)
    for part in fields.get("tiered_pricing", []):
        for field, number in part.items():
            if field in FIELDS:
                sheet = sheets.setdefault(("standard", int(part["range"][0])), {})
                sheet[FIELDS[field]] = pico(model, field, number)
    return sheets


def costs(fields):
    """True if anything costs: a number above 0, alone, under a name of its own or in a range of tiered_pricing."""
    for field, value in fields.items():
        if field == "tiered_pricing":
            if any(costs(part) for part in value):
                return True
        elif "cost" in field or "pric" in field:
            numbers = value.values() if isinstance(value, dict) else [value]
            if any(isinstance(number, Decimal) and number > 0 for number in numbers):
                return True
    return False


def rates(sheets):
    tiers = {tier for tier, _ in sheets} | ({"standard"} if sheets else set())
    for tier in tiers:
        lengths = sorted({0} | {above for whose, above in sheets if whose in ("standard", tier)})
        for length in lengths:
            prices = {}
            for above in lengths:
                if above <= length:
                    prices |= sheets.get(("standard", above), {})
                    prices |= sheets.get((tier, above), {})
            for key, like in LIKE.items():
                if key not in prices and like in prices:
                    prices[key] = prices[like]
            prices.setdefault("per_request", 0)
            yield tier, length, [prices.get(key) for key in KEYS]


def multiplied(entry, standard):
    """The rates of a speed or geography, which multiply the standard ones."""
    for tier in ("fast", "us"):
        if tier in entry:
            for length, prices in standard:
                yield tier, length, [None if price is None else
                                     int((price * entry[tier]).to_integral_value(rounding=ROUND_HALF_EVEN))
                                     for price in prices]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        models = json.load(file, parse_float=Decimal, parse_int=Decimal)
    theirs = {}
    for model, fields in models.items():
        if model != "sample_spec":
            sheets = named(model, fields)
            if not any(price for sheet in sheets.values() for price in sheet.values()) and costs(fields):
                continue
            for tier, above, prices in rates(sheets):
                theirs[model, tier, above] = prices
            standard = [(above, prices) for tier, above, prices in rates(sheets) if tier == "standard"]
            for tier, above, prices in multiplied(fields.get("provider_specific_entry", {}), standard):
                theirs[model, tier, above] = prices
    ours, told = {}, {}
    for line in sys.stdin:
        kind, model, *rest = line.rstrip("\n").split("\t")
        if kind == "rate":
            tier, above, *prices = rest
            ours[model, tier, int(above)] = [None if price == "-" else int(price) for price in prices]
        else:
            field, written, taken = rest
            told[model, field, Decimal(written)] = int(taken)
    differences = [
        f"{key}: ours {ours.get(key)}, by decimals {theirs.get(key)}"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]
    differences += [f"rounding of {key}: told {told.get(key)}, {rounded.get(key)} by decimals"
                    for key in told.keys() | rounded.keys() if told.get(key) != rounded.get(key)]
    for difference in differences[:20]:
        print(difference)
    print(f"{len(theirs)} rates of {len({key[0] for key in theirs})} models, {len(rounded)} roundings, "
          f"{len(differences)} differences")
    sys.exit(bool(differences))


main()
