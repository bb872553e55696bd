"""Pages that are not what was asked for: a wall for robots, a wall for those who do not pay, an empty shell.

A wall taken for a page fails a record whose evidence may well exist; a page taken for a wall loses one that could
be judged. Rules are conservative: a wall is short, and says or does what only a wall does. An article about
captchas, a news page with a note for subscribers and a page with little text of its own are pages.
"""

from __future__ import annotations

import re
from typing import Final

from core.pages.page import PageStatus

Wall = tuple[PageStatus, str]

#: Characters of text beyond which a page is none of these, by kind.
_LONGEST_BOT_WALL: Final = 1_500
_LONGEST_TEASER: Final = 1_500
_LONGEST_SHELL: Final = 200
#: One sign is enough on a page as short as this, if it is one that says it all.
_FEW_WORDS: Final = 600
#: Characters of markup that are searched; walls are short.
_MARKUP: Final = 200_000


def _any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern of several; a blank in them is any white space."""
    return re.compile("|".join(patterns).replace(" ", r"\s+"), re.IGNORECASE)


_YOU_ARE_HUMAN: Final = r"(?:that )?you(?:['’]re| are) (?:a )?(?:human|not a (?:robot|bot))"

#: Titles that only walls have, and titles that other pages have too.
_SURE_TITLES: Final = _any_of(
    r"just a moment(?:\.\.\.|…)",
    r"attention required!?(?: \| cloudflare)?",
    r"pardon our interruption(?:\.\.\.|…)?",
    r"ddos-guard",
    r"vercel security checkpoint",
    r"robot challenge screen",
    r"radware (?:bot manager )?captcha",
    r"please wait(?:\.\.\.|…) \| cloudflare",
    r"checking your browser(?: before .{1,60})?",
    rf"(?:please )?verify(?:ing)? {_YOU_ARE_HUMAN}(?:\.\.\.|…|\.)?",
)
_OTHER_TITLES: Final = _any_of(
    r"just a moment",
    r"access denied",
    r"are you a (?:human|robot)\??",
    r"(?:human|bot|security) (?:verification|check|checkpoint|detection)",
    r"captcha(?: challenge)?",
    r"(?:robot|bot) (?:check|challenge)",
    r"one more step",
    r"403(?: -)? forbidden",
)
#: What walls say to the visitor.
_SAYS: Final = _any_of(
    rf"(?:verify|confirm|prove|check|ensure|make sure|verifying|checking) {_YOU_ARE_HUMAN}",
    r"needs to review the security of your connection",
    r"checking (?:your browser|if the site connection is secure)",
    r"enable javascript and cookies to continue",
    r"unusual (?:traffic|activity) (?:from|on|detected from) your",
    r"(?:complete|solve) the (?:captcha|security check|challenge)\b",
    r"made us think (?:that )?you (?:are|were|might be) a (?:bot|robot)",
    r"you have been blocked",
    r"your (?:ip(?: address)?|request|access) (?:has been|was|is) blocked",
    r"you don['’]t have permission to access .{0,200} on this server",
    r"press (?:and|&) hold to confirm",
    r"(?:performance|security) (?:&|and) (?:performance|security) by cloudflare",
    r"request unsuccessful\. incapsula",
)
#: … as a request, with which a sentence begins.
_ASKS: Final = re.compile(
    rf"(?:\A|[.!?\n]\s*)(?:(?:please|sorry|to\s+continue|before\s+(?:you\s+)?continu\w+|we\s+need\s+to)[,:]?\s+)*"
    rf"(?:{_SAYS.pattern}|our\s+systems\s+have\s+detected\s+unusual\s+traffic)",
    re.IGNORECASE,
)
#: What only walls are made of. Cloudflare's /cdn-cgi/challenge-platform/ stands in ordinary pages too.
_RUNS: Final = _any_of(
    r"_cf_chl_opt",
    r"cf-challenge|cf_chl_(?:f_tk|rt_tk|captcha)",
    r"""\bid=["']?challenge-(?:form|running|error-text)""",
    r"_incapsula_resource",
    r"px-captcha",
    r"captcha-delivery\.com",
    r"ddos-guard/js-challenge",
    r"awswafintegration",
    r"""\bid=["']?sec-(?:if-cpt|cpt)-container""",
    r"errors\.edgesuite\.net",
    r"distil_r_captcha",
    r"/_vercel/security",
)

_TO_READ_ON: Final = r"to (?:continue|keep|finish) reading"
_JOIN: Final = r"(?:subscribe|sign (?:up|in)|log ?in|register|join)"
#: What stands where the rest of an article would.
_PAY: Final = _any_of(
    rf"{_JOIN} (?:now )?{_TO_READ_ON}",
    rf"{_TO_READ_ON}\W{{1,3}}(?:please )?(?:{_JOIN}|start your)",
    r"(?:this|the (?:full|rest of this)) (?:article|story|content|post) is (?:only )?(?:available )?"
    r"(?:exclusively )?"
    r"(?:for|to) (?:our )?(?:paid |paying |premium )?(?:subscribers|members)",
    r"subscribe (?:now )?to (?:read|unlock|access) (?:the )?(?:full|rest|this|whole|entire)",
    r"you(?:['’]ve| have) (?:read|reached|used) (?:all )?(?:of )?your .{0,40}(?:free|limit)",
)
#: What many pages say to their readers, whole articles too.
_MEMBERS: Final = _any_of(r"already a (?:subscriber|member)\?")
_NOT_FREE: Final = re.compile(r'"isAccessibleForFree"\s*:\s*"?false', re.IGNORECASE)

_WANTS_SCRIPTS: Final = _any_of(
    r"(?:enable|activate|turn on|requires?|needs?|without) (?:your )?javascript",
    r"javascript (?:is|must be|to be|has to be) (?:required|enabled|disabled|needed|turned off)",
)
#: The element that an application fills once its scripts run.
_MOUNT: Final = re.compile(
    r"<app-root\b|<(?:div|main|body)\b[^>]{0,200}\bid\s*=\s*[\"']?"
    r"(?:root|app|__next|__nuxt|___gatsby|application|react-root|q-app|main-app)[\"'\s>]",
    re.IGNORECASE,
)


def wall(markup: str, *, title: str, text: str, main: str, without_scripts: str, has_scripts: bool) -> Wall | None:
    """What a page is instead of the one that was asked for, and why it is held to be that; None for a page.

    `text` is all that a reader sees, `main` the readable part of it, `without_scripts` what the page shows to a
    browser that runs no scripts.
    """
    markup = markup[:_MARKUP]
    return (
        _bot_wall(markup, title, text, without_scripts)
        or _paywall(markup, text, main)
        or _shell(markup, text, without_scripts, has_scripts=has_scripts)
    )


def _bot_wall(markup: str, title: str, text: str, without_scripts: str) -> Wall | None:
    if len(text) > _LONGEST_BOT_WALL:
        return None
    title = title.strip()
    sure = _SURE_TITLES.fullmatch(title) is not None
    titled = sure or _OTHER_TITLES.fullmatch(title) is not None
    runs = _RUNS.search(markup) is not None
    said = f"{text}\n{without_scripts}"
    says, asks = _SAYS.search(said) is not None, _ASKS.search(said) is not None
    if len(text) <= _FEW_WORDS:
        is_wall = sure or runs or asks
    else:
        is_wall = (sure and says) or (titled and asks) or (runs and (titled or says))
    if not is_wall:
        return None
    signs = (("its title", titled), ("what it says", says), ("its scripts", runs))
    return "bot_wall", f"a wall for robots, to judge by {' and '.join(sign for sign, there in signs if there)}"


def _paywall(markup: str, text: str, main: str) -> Wall | None:
    if len(main) > _LONGEST_TEASER:
        return None
    # an article that ends in the offer; or one that says to search engines that it is not free, and makes it
    offer = _PAY.search(main)
    if offer is None and _NOT_FREE.search(markup):
        offer = _PAY.search(text) or _MEMBERS.search(text)
    if offer is None:
        return None
    return "paywall", f"a wall for those who do not pay: “{' '.join(offer.group().split())[:80]}”"


def _shell(markup: str, text: str, without_scripts: str, *, has_scripts: bool) -> Wall | None:
    if not has_scripts or len(text) > _LONGEST_SHELL:
        return None
    if not text:
        return "empty_js", "empty without JavaScript: it has scripts and no text"
    if _WANTS_SCRIPTS.search(f"{text}\n{without_scripts}"):
        return "empty_js", "empty without JavaScript: it asks for it"
    if _MOUNT.search(markup):
        return "empty_js", "empty without JavaScript: it is an application's frame"
    return None
