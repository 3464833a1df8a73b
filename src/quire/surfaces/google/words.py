"""The sentences about connecting Google. The guide `docs/guides/connect-google.md` holds the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.workspace.uses import Uses, host_of

NO_CLIENT = (
    "there is no client file. Make one once: in the Google Cloud console choose a project, switch on the APIs, and "
    "under 'APIs & Services > Credentials' create an OAuth client of the kind 'Desktop app'; download it as "
    "credentials.json beside quire.toml, or name it with --client. Quire ships no client of its own."
)
SEVEN_DAYS = (
    "The app is in testing: Google ends this sign-in after seven days. To keep it, set the user type to Internal, or "
    "publish the app, and connect again."
)
UNTICKED = "These boxes were left unticked: {scopes}. Run: quire connect --add {words}"
NO_BROWSER = (
    "Open this link in any browser. It leads back to this machine, so if the browser is on another one, first run "
    "there: ssh -L {port}:127.0.0.1:{port} {host}"
)
ROBOT = (
    "A service account has no storage of its own, no mailbox, and cannot invite guests: give it a folder in a shared "
    "drive, or let an administrator delegate and set subject."
)
DELEGATION = (
    "An administrator adds the client id and these scopes once: admin.google.com > Security > API controls > "
    "Domain-wide delegation."
)
NO_KEYS = (
    "An organisation that forbids keys: give the machine an identity of its own (attached, or workload federation), "
    "let it impersonate a service account (role roles/iam.serviceAccountTokenCreator), and set credentials = "
    '"impersonate:ROBOT".'
)
GCLOUD = (
    "gcloud's own client may not ask for Workspace scopes. Give it yours, once: gcloud auth application-default login "
    "--client-id-file=credentials.json --scopes={scopes}"
)
QUOTA_PROJECT = (
    "Google needs a project to count the calls against: gcloud auth application-default set-quota-project PROJECT"
)
SEND_ONLY = "gmail.send alone would do without a restricted scope; then a lost answer asks a person: --mail send-only"

#: All of them, for the test that compares them with the guide.
ALL = (NO_CLIENT, SEVEN_DAYS, ROBOT, DELEGATION, NO_KEYS, QUOTA_PROJECT)


def enabling(hosts: Sequence[str], project: str = "") -> str:
    """One line that switches the APIs on, and where it is done by hand."""
    names = " ".join(hosts)
    where = f"&project={project}" if project else ""
    return f"gcloud services enable {names}   (or https://console.cloud.google.com/apis/library?q=workspace{where})"


def listed(words: Iterable[str]) -> str:
    return " · ".join(words)


def used(uses: Uses) -> list[str]:
    """Which acts each workflow uses."""
    return [f"{name} uses {' '.join(acts)}" for name, acts in uses.acts.items()]


def unticked(missing: Sequence[str], uses: Uses) -> str:
    why = [f"{scope} ({found})" if (found := uses.wanted_by(scope)) else scope for scope in missing]
    return UNTICKED.format(scopes=", ".join(why), words=" --add ".join(missing))


def hosts_of(scopes: Iterable[str]) -> list[str]:
    from quire.workspace.uses import api_of

    return list(dict.fromkeys(host_of(api) for scope in scopes if (api := api_of(scope))))
