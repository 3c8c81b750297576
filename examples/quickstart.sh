mkdir -p .hermes
cat > .hermes/workflows.registry.json <<'JSON'
{"dbs": {"default": "workflows.sqlite"},
 "workflows": {"reviewable-draft": {"workflow_ref": "hermes_workflows.examples.reviewable_draft:reviewable_draft_workflow", "db": "default"}}}
JSON
hermes-workflows run reviewable-draft --config .hermes/workflows.registry.json --id wf_reviewable_draft_quickstart --input-json '{"topic":"Hermes Workflows launch"}'
hermes-workflows runner run --config .hermes/workflows.registry.json --worker-id quickstart-worker --max-commands 5 --idle-exit-after 0.1
hermes-workflows status --db .hermes/workflows.sqlite --id wf_reviewable_draft_quickstart
hermes-workflows review list
hermes-workflows review respond wf_reviewable_draft_quickstart review_draft --json '{"action":"approve","feedback":"Ship it."}' --by you --channel cli --message-id demo-1
hermes-workflows runner run --config .hermes/workflows.registry.json --idle-exit-after 0.1
git -C .hermes/workflows.git log --oneline runs/wf_reviewable_draft_quickstart
git -C .hermes/workflows.git diff main runs/wf_reviewable_draft_quickstart
