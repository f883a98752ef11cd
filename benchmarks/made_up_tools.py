"""A catalogue of made-up tools that read like real ones, the same in every run."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from toolcrib.infra.search import Row
from toolcrib.lib.names import stable_id

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBS = """
get list create update delete send find export import convert calculate schedule archive restore validate merge split
translate summarize publish approve cancel upload download resize encrypt decrypt compress parse render sync rename
copy move assign close reopen tag label rank score
"""
THINGS = """
invoice customer order payment refund subscription ticket message channel email calendar event meeting contact lead
campaign report dashboard metric alert incident deployment container cluster repository branch commit issue
pull-request comment page document spreadsheet slide image video audio transcript file folder bucket table row query schema
index user group role permission token session device sensor location route map weather forecast currency
exchange-rate stock portfolio trade shipment package warehouse product price discount coupon review rating survey form answer
course lesson quiz grade student employee payroll vacation timesheet contract signature template translation
dictionary recipe ingredient patient appointment prescription
"""
SERVICES = """
Salesforce Stripe Slack GitHub GitLab Jira Confluence Notion Asana Trello Zendesk HubSpot Shopify Mailchimp Twilio
Dropbox Box Drive Sheets Outlook Teams Zoom Calendly Airtable Postgres MySQL Snowflake BigQuery Redis Kafka Kubernetes
Docker Terraform Datadog Grafana PagerDuty Sentry Okta Auth0 AWS Azure Cloudflare Vercel Figma Miro Intercom Segment
Amplitude Mixpanel QuickBooks Xero SAP Workday Greenhouse BambooHR DocuSign PayPal Square Plaid FedEx UPS Maps
OpenWeather
"""
QUALITIES = """
the newest every single active archived overdue pending shared private public recent monthly weekly daily recurring
failed open unread large duplicate
"""
PARAMETERS = {
    "limit": "how many to return at most",
    "cursor": "where the last page ended",
    "query": "words to look for",
    "id": "the identifier of the record",
    "name": "what it is to be called",
    "start_date": "first day of the range, as YYYY-MM-DD",
    "end_date": "last day of the range, as YYYY-MM-DD",
    "format": "csv, json or pdf",
    "recipient": "the address that it is sent to",
    "subject": "the line above the text",
    "amount": "how much, in the smallest unit of the currency",
    "currency": "three-letter code such as EUR",
    "language": "two-letter code of the language",
    "timezone": "name of the time zone, such as Europe/Berlin",
    "latitude": "degrees north of the equator",
    "longitude": "degrees east of Greenwich",
    "dry_run": "only say what would be done",
    "status": "open, closed or all",
    "sort_by": "the field that decides the order",
    "include_archived": "whether those that were put away count too",
}
ENDINGS = (
    "Returns the records as JSON, newest first.",
    "Use this when the user asks for an overview.",
    "Fails if the caller may not see the record.",
    "Does nothing if it was done before.",
    "The result can be handed to the next step without changes.",
    "Needs a connected account.",
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def make_up(count: int, seed: int = 7) -> Iterator[Row]:
    """That many tools in bundles of a hundred."""
    chance = random.Random(seed)
    for number in range(count):
        yield make_one(number, chance)


def make_one(number: int, chance: random.Random) -> Row:
    verb, thing, service = chance.choice(VERBS.split()), chance.choice(THINGS.split()), chance.choice(SERVICES.split())
    quality, other = chance.choice(QUALITIES.split()), chance.choice(THINGS.split())
    slug = (
        f"{service.lower()}-{verb}-{thing}"
        if chance.random() < 0.4
        else f"{verb}-{quality}-{thing}-in-{service.lower()}"
    )
    bundle = stable_id("bundle", str(number // 100))
    modified = (
        START + timedelta(seconds=chance.randrange(20_000_000), milliseconds=chance.randrange(1_000))
    ).isoformat(timespec="milliseconds")
    return Row(
        id=stable_id("tool", str(number)),
        bundle=bundle,
        slug=slug,
        version=f"1.0.{number}",
        name=slug.replace("-", "_"),
        display_name=slug.replace("-", " ").title(),
        description=f"{verb.capitalize()} {quality} {thing.replace('-', ' ')} of {service}, together with its {other}. {chance.choice(ENDINGS)}",
        tags=(thing.split("-")[0], service.lower()),
        parameters=tuple((name, PARAMETERS[name]) for name in chance.sample(list(PARAMETERS), chance.randint(2, 5))),
        created_at="2026-01-01T00:00:00.000Z",
        modified_at=modified.replace("+00:00", "Z"),
        key=f"bundles/{bundle}/{slug}@{number}.json",
        stamp=str(number),
    )
