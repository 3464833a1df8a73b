"""The mission of the demo: the colony on Mars of the source article, with answers that were written beforehand."""

from __future__ import annotations

from typing import Any

ENGINEER, RESOURCES, GOVERNOR = "CHAIN-MARS-ENGINEER", "CHAIN-MARS-RESOURCES", "CHAIN-MARS-GOVERNOR"

BLUEPRINT: dict[str, Any] = {
    "mission": "mars-colony",
    "MAX_TURNS": 3,
    "MAX_RETRIES": 2,
    "AGENTS": [
        {
            "id": ENGINEER,
            "initialPrompt": "You are the Lead Engineer of a colony on Mars. Lay out the power grid, the habitats and "
            "the life support for the first 100 settlers.",
        },
        {
            "id": RESOURCES,
            "initialPrompt": "You are the Resource Director of a colony on Mars. Lay out how water, food and oxygen "
            "are won, stored and shared for the first 100 settlers.",
        },
        {
            "id": GOVERNOR,
            "initialPrompt": "You are the Governor of a colony on Mars. Lay out how the first 100 settlers decide, "
            "work and keep safe.",
        },
    ],
    "TURN_PROMPTS": {
        2: "CRISIS UPDATE: a dust storm that covers the planet has cut solar power to 15 % for at least 60 days. Based "
        "on your previous plans, what do you change at once?",
        3: "FINAL STAGE: the storm is over. Write your department's definitive plan, which joins the first plan with "
        "what the storm has taught.",
    },
    "REDUCER": {
        "id": "CHAIN-MARS-MANIFESTO",
        "prompt": "You are the chronicler of the colony. Join the reports of the Lead Engineer, the Resource Director "
        "and the Governor into one 'Mars Master Manifesto', in phases I to III. Name conflicts between them.\n\n",
    },
}

_REPLIES = {
    ENGINEER: [
        (
            "Three pressurised habitats around a common core. Power: 2 MW of solar fields in one grid, with "
            "batteries for "
            "one night. Life support is central: one plant for air and water, one in reserve."
        ),
        (
            "One grid is one failure. **Decentralized Grid Isolation**: each habitat becomes an island with its own "
            "battery and a 40 kW reactor; loads are shed in four classes, air last."
        ),
        (
            "Definitive plan: islands by default, joined only in good weather. Two reactors for three habitats, "
            "solar for "
            "industry. Life support in each habitat, sized for 140 % of its people. Storm drill every quarter."
        ),
    ],
    RESOURCES: [
        (
            "Water from ice at the northern slope, 1.2 t a day. Food from two glass houses on the surface. Oxygen from "
            "water, with 20 days in tanks."
        ),
        (
            "The glass houses are dark and cold: we move farming into **Subterranean Lava Tubes** under red light, "
            "on a "
            "third of the power. Rations fall to 80 % for 45 days; oxygen in tanks is not touched."
        ),
        (
            "Definitive plan: staple crops in the lava tubes, herbs and hope on the surface. 90 days of food, 45 of "
            "oxygen, in two places. Ice is mined in calm months only."
        ),
    ],
    GOVERNOR: [
        (
            "A council of seven, elected for a Martian year. Shifts of six hours. Safety has a veto that only the "
            "whole "
            "council can lift."
        ),
        (
            "**Habitat Consolidation**: 100 people move into two habitats within 72 hours; the third is kept at 5 "
            "°C. The "
            "council meets daily; the veto of safety stands alone for 60 days."
        ),
        (
            "Definitive plan: consolidation is practised and has a trigger (power below 30 % for 10 days), so that "
            "nobody "
            "must decide it in fear. The council gets its powers back by a date, not by a vote."
        ),
    ],
    "CHAIN-MARS-MANIFESTO": [
        (
            "## Mars Master Manifesto\n\n"
            "**Phase I, before the storm.** Habitats are islands (Decentralized Grid Isolation); farming moves into "
            "Subterranean Lava Tubes; the trigger for consolidation is agreed: power below 30 % for 10 days.\n\n"
            "**Phase II, in the storm.** Habitat Consolidation within 72 hours; loads are shed in four classes, air "
            "last; "
            "rations at 80 % for 45 days; the veto of safety stands alone, until a fixed date.\n\n"
            "**Phase III, after it.** Islands are joined in good weather only; 90 days of food and 45 of oxygen in two "
            "places; a drill every quarter.\n\n"
            "**Where they differ.** The Engineer wants reactors for industry too, the Resource Director wants that "
            "power "
            "for the tubes: the council decides each calm season."
        )
    ],
}


def blueprint(delay: float = 0.6) -> dict[str, Any]:
    """The demo's blueprint. Its model answers from a script, after ``delay`` seconds, and says so."""
    return {**BLUEPRINT, "model": {"model": "scripted", "script": {"delay": delay, "replies": _REPLIES}}}


def local_blueprint() -> dict[str, Any]:
    """Return the demo's blueprint with the local model, which computes its answers: short ones, for it is slow."""
    return {**BLUEPRINT, "model": {"model": "local", "timeout": "10m", "settings": {"max_tokens": 90}}, "judge": False}
