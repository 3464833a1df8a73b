#!/usr/bin/env bash
# Deploys the service, the scheduler that calls it every minute, and a Pub/Sub push subscription that starts records.
#   PROJECT=my-project REGION=europe-west1 TOKEN=qt_… deploy/cloudrun/deploy.sh
# TOKEN is an operator's token of the ledger (quire token create scheduler --role operator).
set -euo pipefail
: "${PROJECT:?the Google Cloud project}" "${REGION:?the region}" "${TOKEN:?a token: quire token create scheduler --role operator}"
TOPIC=${TOPIC:-quire-events}
HOOK=${HOOK:-events}
here=$(cd "$(dirname "$0")" && pwd)
service=$(mktemp)
trap 'rm -f "$service"' EXIT

applied() {
  sed -e "s|@PROJECT@|$PROJECT|g" -e "s|@REGION@|$REGION|g" -e "s|@URL@|$1|" "$here/service.yaml" >"$service"
  gcloud run services replace "$service" --project "$PROJECT" --region "$REGION"
}

# The address is known only after the first deployment, and the service has to know its own: it calls itself.
url=$(gcloud run services describe quire --project "$PROJECT" --region "$REGION" --format 'value(status.url)' 2>/dev/null || true)
if [ -z "$url" ]; then
  applied "https://not-known-yet.invalid"
  url=$(gcloud run services describe quire --project "$PROJECT" --region "$REGION" --format 'value(status.url)')
fi
applied "$url"
# The doors of Quire ask for a token; the platform lets everybody come to them.
gcloud run services add-iam-policy-binding quire --project "$PROJECT" --region "$REGION" \
  --member allUsers --role roles/run.invoker

# The periodic caller: without it nothing is promised to move.
verb=create
gcloud scheduler jobs describe quire-tick --project "$PROJECT" --location "$REGION" >/dev/null 2>&1 && verb=update
flag=--headers
[ "$verb" = update ] && flag=--update-headers
gcloud scheduler jobs "$verb" http quire-tick --project "$PROJECT" --location "$REGION" \
  --schedule '* * * * *' --uri "$url/tick" --http-method POST --attempt-deadline 120s \
  "$flag" "Authorization=Bearer $TOKEN"

# Events: a topic whose messages become records. The hook is made with PUT /api/hooks/$HOOK, see docs/deploy.md.
account="quire-push@$PROJECT.iam.gserviceaccount.com"
gcloud iam service-accounts describe "$account" --project "$PROJECT" >/dev/null 2>&1 ||
  gcloud iam service-accounts create quire-push --project "$PROJECT" --display-name 'pushes events to Quire'
gcloud pubsub topics describe "$TOPIC" --project "$PROJECT" >/dev/null 2>&1 ||
  gcloud pubsub topics create "$TOPIC" --project "$PROJECT"
gcloud pubsub subscriptions describe "$TOPIC-push" --project "$PROJECT" >/dev/null 2>&1 ||
  gcloud pubsub subscriptions create "$TOPIC-push" --project "$PROJECT" --topic "$TOPIC" \
    --push-endpoint "$url/hooks/$HOOK" --push-auth-service-account "$account" --push-auth-token-audience "$url" \
    --ack-deadline 60 --min-retry-delay 10s --max-retry-delay 600s
echo "deployed: $url"
