CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, oldest_step VARCHAR(32),
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE teams (
	id VARCHAR(64) NOT NULL,
	name VARCHAR(64) NOT NULL,
	"plan" VARCHAR(32) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_teams PRIMARY KEY (id),
	CONSTRAINT uq_teams_name UNIQUE (name),
	CONSTRAINT ck_teams_plan CHECK (plan IN ('personal_free', 'personal_pro', 'team_pro', 'enterprise'))
);
CREATE TABLE users (
	id VARCHAR(64) NOT NULL,
	name VARCHAR(64) NOT NULL,
	team_id VARCHAR(64),
	"plan" VARCHAR(32) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	role VARCHAR(16),
	CONSTRAINT pk_users PRIMARY KEY (id),
	CONSTRAINT uq_users_name UNIQUE (name),
	CONSTRAINT fk_users_team_id FOREIGN KEY(team_id) REFERENCES teams (id),
	CONSTRAINT ck_users_plan CHECK (plan IN ('personal_free', 'personal_pro', 'team_pro', 'enterprise')),
	CONSTRAINT ck_users_role CHECK (role IN ('viewer', 'user', 'team_admin', 'admin'))
);
CREATE TABLE api_keys (
	id VARCHAR(64) NOT NULL,
	hash BLOB NOT NULL,
	prefix VARCHAR(16) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	revoked_at_ms BIGINT,
	name VARCHAR(128) DEFAULT '' NOT NULL,
	expires_at_ms BIGINT,
	disabled BOOLEAN DEFAULT 0 NOT NULL,
	replaces VARCHAR(64),
	for_sign_in BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_api_keys PRIMARY KEY (id),
	CONSTRAINT uq_api_keys_hash UNIQUE (hash),
	CONSTRAINT fk_api_keys_user_id FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE TABLE console_sessions (
	id VARCHAR(64) NOT NULL,
	hash BLOB NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	role VARCHAR(16),
	method VARCHAR(16) NOT NULL,
	admin_key_id VARCHAR(64) DEFAULT '' NOT NULL,
	created_at_ms BIGINT NOT NULL,
	used_at_ms BIGINT NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_console_sessions PRIMARY KEY (id),
	CONSTRAINT uq_console_sessions_hash UNIQUE (hash),
	CONSTRAINT fk_console_sessions_key_id FOREIGN KEY(key_id) REFERENCES api_keys (id),
	CONSTRAINT ck_console_sessions_role CHECK (role IN ('viewer', 'user', 'team_admin', 'admin'))
);
CREATE TABLE invitations (
	id VARCHAR(64) NOT NULL,
	hash BLOB NOT NULL,
	role VARCHAR(16) NOT NULL,
	user_name VARCHAR(64) DEFAULT '' NOT NULL,
	team_id VARCHAR(64),
	"plan" VARCHAR(32),
	created_by VARCHAR(64) NOT NULL,
	created_by_name VARCHAR(128) DEFAULT '' NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	accepted_at_ms BIGINT,
	accepted_user_id VARCHAR(64),
	CONSTRAINT pk_invitations PRIMARY KEY (id),
	CONSTRAINT uq_invitations_hash UNIQUE (hash),
	CONSTRAINT fk_invitations_team_id FOREIGN KEY(team_id) REFERENCES teams (id),
	CONSTRAINT fk_invitations_accepted_user_id FOREIGN KEY(accepted_user_id) REFERENCES users (id),
	CONSTRAINT ck_invitations_role CHECK (role IN ('viewer', 'user', 'team_admin', 'admin')),
	CONSTRAINT ck_invitations_plan CHECK (plan IN ('personal_free', 'personal_pro', 'team_pro', 'enterprise'))
);
CREATE TABLE secrets (
	name VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	value BLOB NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_secrets PRIMARY KEY (name, key_id)
);
CREATE TABLE admin_keys (
	id VARCHAR(64) NOT NULL,
	hash BLOB NOT NULL,
	prefix VARCHAR(16) NOT NULL,
	name VARCHAR(128) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	revoked_at_ms BIGINT,
	scopes VARCHAR(64) DEFAULT 'all' NOT NULL,
	CONSTRAINT pk_admin_keys PRIMARY KEY (id),
	CONSTRAINT uq_admin_keys_hash UNIQUE (hash)
);
CREATE TABLE audit_log (
	id VARCHAR(64) NOT NULL,
	at_ms BIGINT NOT NULL,
	actor VARCHAR(64) NOT NULL,
	action VARCHAR(64) NOT NULL,
	subject_kind VARCHAR(16) NOT NULL,
	subject_id VARCHAR(64) NOT NULL,
	"before" TEXT,
	"after" TEXT,
	request_id VARCHAR(128) NOT NULL,
	actor_name VARCHAR(128) DEFAULT '' NOT NULL,
	address VARCHAR(64) DEFAULT '' NOT NULL,
	CONSTRAINT pk_audit_log PRIMARY KEY (id)
);
CREATE TABLE erasures (
	user_id VARCHAR(64) NOT NULL,
	requested_at_ms BIGINT NOT NULL,
	finished_at_ms BIGINT,
	due_at_ms BIGINT,
	CONSTRAINT pk_erasures PRIMARY KEY (user_id)
);
CREATE TABLE erased_items (
	user_id VARCHAR(64) NOT NULL,
	kind VARCHAR(32) NOT NULL,
	items BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_erased_items PRIMARY KEY (user_id, kind),
	CONSTRAINT fk_erased_items_user_id FOREIGN KEY(user_id) REFERENCES erasures (user_id)
);
CREATE TABLE stored_providers (
	name VARCHAR(64) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	base_url VARCHAR(2048) NOT NULL,
	sealed_key BLOB,
	sealed_by VARCHAR(16) DEFAULT '' NOT NULL,
	created_at_ms BIGINT NOT NULL,
	key_set_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_stored_providers PRIMARY KEY (name)
);
CREATE TABLE leases (
	name VARCHAR(64) NOT NULL,
	holder VARCHAR(64) NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
CREATE TABLE file_usage (
	owner_id VARCHAR(64) NOT NULL,
	files BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	uploads BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_file_usage PRIMARY KEY (owner_id),
	CONSTRAINT ck_file_usage_files CHECK (files >= 0),
	CONSTRAINT ck_file_usage_size_bytes CHECK (size_bytes >= 0),
	CONSTRAINT ck_file_usage_uploads CHECK (uploads >= 0)
);
CREATE TABLE files (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	filename VARCHAR(255) NOT NULL,
	purpose VARCHAR(16) NOT NULL,
	size_bytes BIGINT NOT NULL,
	mime_type VARCHAR(255) NOT NULL,
	created_at_s BIGINT NOT NULL,
	expires_at_s BIGINT NOT NULL,
	sha256 VARCHAR(64) NOT NULL,
	CONSTRAINT pk_files PRIMARY KEY (id),
	CONSTRAINT fk_files_owner_id FOREIGN KEY(owner_id) REFERENCES file_usage (owner_id),
	CONSTRAINT ck_files_purpose CHECK (purpose IN ('assistants', 'batch', 'fine_tune', 'vision', 'user_data', 'evals', 'batch_output'))
);
CREATE TABLE uploads (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	status VARCHAR(16) NOT NULL,
	filename VARCHAR(255) NOT NULL,
	purpose VARCHAR(16) NOT NULL,
	mime_type VARCHAR(255) NOT NULL,
	size_bytes BIGINT,
	lifetime_s BIGINT NOT NULL,
	received_bytes BIGINT NOT NULL,
	parts INTEGER NOT NULL,
	created_at_s BIGINT NOT NULL,
	expires_at_s BIGINT NOT NULL,
	file_id VARCHAR(64),
	order_sha256 VARCHAR(64),
	key_share BLOB,
	metadata VARCHAR(4096),
	CONSTRAINT pk_uploads PRIMARY KEY (id),
	CONSTRAINT fk_uploads_owner_id FOREIGN KEY(owner_id) REFERENCES file_usage (owner_id),
	CONSTRAINT ck_uploads_status CHECK (status IN ('pending', 'completed', 'cancelled')),
	CONSTRAINT ck_uploads_purpose CHECK (purpose IN ('assistants', 'batch', 'fine_tune', 'vision', 'user_data', 'evals'))
);
CREATE TABLE upload_parts (
	id VARCHAR(64) NOT NULL,
	upload_id VARCHAR(64) NOT NULL,
	first_byte BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_upload_parts PRIMARY KEY (id),
	CONSTRAINT fk_upload_parts_upload_id FOREIGN KEY(upload_id) REFERENCES uploads (id)
);
CREATE TABLE article_groups (
	id BIGINT NOT NULL,
	name VARCHAR(200) NOT NULL,
	creator_id VARCHAR(64) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_article_groups PRIMARY KEY (id)
);
CREATE TABLE article_group_members (
	group_id BIGINT NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	added_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_article_group_members PRIMARY KEY (group_id, user_id),
	CONSTRAINT fk_article_group_members_group_id FOREIGN KEY(group_id) REFERENCES article_groups (id)
);
CREATE TABLE grants (
	user_id VARCHAR(64) NOT NULL,
	name VARCHAR(64) NOT NULL,
	given_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_grants PRIMARY KEY (user_id, name)
);
CREATE TABLE articles (
	id VARCHAR(20) NOT NULL,
	group_id BIGINT,
	creator_id VARCHAR(64) NOT NULL,
	name VARCHAR(200) NOT NULL,
	permission VARCHAR(16) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	deleted_at_ms BIGINT,
	size_bytes BIGINT DEFAULT '0' NOT NULL,
	charged_bytes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_articles PRIMARY KEY (id),
	CONSTRAINT fk_articles_group_id FOREIGN KEY(group_id) REFERENCES article_groups (id),
	CONSTRAINT ck_articles_permission CHECK (permission IN ('private', 'group-only'))
);
CREATE TABLE article_operations (
	article_id VARCHAR(20) NOT NULL,
	revision BIGINT NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	client_id VARCHAR(64) DEFAULT '' NOT NULL,
	at_ms BIGINT NOT NULL,
	operation BLOB NOT NULL,
	inverse BLOB NOT NULL,
	CONSTRAINT pk_article_operations PRIMARY KEY (article_id, revision),
	CONSTRAINT fk_article_operations_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_snapshots (
	article_id VARCHAR(20) NOT NULL,
	revision BIGINT NOT NULL,
	content BLOB NOT NULL,
	size_bytes BIGINT NOT NULL,
	log_bytes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_article_snapshots PRIMARY KEY (article_id),
	CONSTRAINT fk_article_snapshots_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_sessions (
	id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	article_id VARCHAR(20) NOT NULL,
	client_id VARCHAR(64) DEFAULT '' NOT NULL,
	latest BOOLEAN NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_article_sessions PRIMARY KEY (id),
	CONSTRAINT fk_article_sessions_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_usage (
	owner_id VARCHAR(64) NOT NULL,
	"plan" VARCHAR(32) NOT NULL,
	documents BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	deleted_bytes BIGINT NOT NULL,
	CONSTRAINT pk_article_usage PRIMARY KEY (owner_id),
	CONSTRAINT ck_article_usage_documents CHECK (documents >= 0),
	CONSTRAINT ck_article_usage_size_bytes CHECK (size_bytes >= 0),
	CONSTRAINT ck_article_usage_deleted_bytes CHECK (deleted_bytes >= 0)
);
CREATE TABLE article_requests (
	article_id VARCHAR(20) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	request_id VARCHAR(64) NOT NULL,
	at_ms BIGINT NOT NULL,
	fingerprint BLOB NOT NULL,
	answer BLOB NOT NULL,
	CONSTRAINT pk_article_requests PRIMARY KEY (article_id, user_id, request_id),
	CONSTRAINT fk_article_requests_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_files (
	article_id VARCHAR(20) NOT NULL,
	file_id VARCHAR(64) NOT NULL,
	CONSTRAINT pk_article_files PRIMARY KEY (article_id, file_id)
);
CREATE TABLE article_comments (
	id VARCHAR(64) NOT NULL,
	article_id VARCHAR(20) NOT NULL,
	thread_id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	edited_at_ms BIGINT,
	text TEXT NOT NULL,
	element_id VARCHAR(64) DEFAULT '' NOT NULL,
	anchor BLOB,
	resolved_at_ms BIGINT,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_article_comments PRIMARY KEY (id),
	CONSTRAINT fk_article_comments_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_suggestions (
	id VARCHAR(64) NOT NULL,
	article_id VARCHAR(20) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	revision BIGINT NOT NULL,
	kind VARCHAR(32) NOT NULL,
	patch BLOB NOT NULL,
	edit BLOB,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_article_suggestions PRIMARY KEY (id),
	CONSTRAINT fk_article_suggestions_article_id FOREIGN KEY(article_id) REFERENCES articles (id)
);
CREATE TABLE article_suggested_files (
	suggestion_id VARCHAR(64) NOT NULL,
	file_id VARCHAR(64) NOT NULL,
	CONSTRAINT pk_article_suggested_files PRIMARY KEY (suggestion_id, file_id),
	CONSTRAINT fk_article_suggested_files_suggestion_id FOREIGN KEY(suggestion_id) REFERENCES article_suggestions (id) ON DELETE CASCADE
);
CREATE TABLE memory_owners (
	owner_id VARCHAR(64) NOT NULL,
	memories BIGINT NOT NULL,
	size_bytes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_memory_owners PRIMARY KEY (owner_id),
	CONSTRAINT ck_memory_owners_memories CHECK (memories >= 0)
);
CREATE TABLE memories (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	memory_id VARCHAR(256) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	updated_at_ms BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	turns BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	summarised BIGINT NOT NULL,
	reservations BIGINT NOT NULL,
	size_bytes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_memories PRIMARY KEY (id),
	CONSTRAINT fk_memories_owner_id FOREIGN KEY(owner_id) REFERENCES memory_owners (owner_id),
	CONSTRAINT uq_memories_owner_id_memory_id UNIQUE (owner_id, memory_id)
);
CREATE TABLE memory_parts (
	entity_id VARCHAR(64) NOT NULL,
	first_message BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	messages BIGINT NOT NULL,
	turn BIGINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	open BOOLEAN NOT NULL,
	superseded_at_ms BIGINT,
	content BLOB NOT NULL,
	CONSTRAINT pk_memory_parts PRIMARY KEY (entity_id, first_message, epoch),
	CONSTRAINT fk_memory_parts_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id)
);
CREATE TABLE memory_keys (
	entity_id VARCHAR(64) NOT NULL,
	chunk BIGINT NOT NULL,
	packed BLOB NOT NULL,
	CONSTRAINT pk_memory_keys PRIMARY KEY (entity_id, chunk),
	CONSTRAINT fk_memory_keys_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id)
);
CREATE TABLE memory_queues (
	entity_id VARCHAR(64) NOT NULL,
	mode VARCHAR(16) NOT NULL,
	tickets BIGINT NOT NULL,
	CONSTRAINT pk_memory_queues PRIMARY KEY (entity_id, mode),
	CONSTRAINT fk_memory_queues_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id)
);
CREATE TABLE memory_claims (
	id VARCHAR(64) NOT NULL,
	entity_id VARCHAR(64) NOT NULL,
	mode VARCHAR(16) NOT NULL,
	ticket BIGINT NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_memory_claims PRIMARY KEY (id),
	CONSTRAINT fk_memory_claims_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id),
	CONSTRAINT uq_memory_claims_entity_id_mode_ticket UNIQUE (entity_id, mode, ticket)
);
CREATE TABLE memory_archives (
	entity_id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	turns BIGINT NOT NULL,
	terms BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	CONSTRAINT pk_memory_archives PRIMARY KEY (entity_id)
);
CREATE TABLE memory_archive_turns (
	entity_id VARCHAR(64) NOT NULL,
	turn BIGINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	terms BIGINT NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT pk_memory_archive_turns PRIMARY KEY (entity_id, turn),
	CONSTRAINT fk_memory_archive_turns_entity_id FOREIGN KEY(entity_id) REFERENCES memory_archives (entity_id)
);
CREATE TABLE memory_archive_postings (
	entity_id VARCHAR(64) NOT NULL,
	term BIGINT NOT NULL,
	block BIGINT NOT NULL,
	postings BLOB NOT NULL,
	CONSTRAINT pk_memory_archive_postings PRIMARY KEY (entity_id, term, block),
	CONSTRAINT fk_memory_archive_postings_entity_id FOREIGN KEY(entity_id) REFERENCES memory_archives (entity_id)
)
 WITHOUT ROWID
;
CREATE TABLE memory_archive_vectors (
	entity_id VARCHAR(64) NOT NULL,
	turn BIGINT NOT NULL,
	model TEXT NOT NULL,
	vector BLOB NOT NULL,
	CONSTRAINT pk_memory_archive_vectors PRIMARY KEY (entity_id, turn, model),
	CONSTRAINT fk_memory_archive_vectors_turn FOREIGN KEY(entity_id, turn) REFERENCES memory_archive_turns (entity_id, turn)
);
CREATE TABLE memory_archive_signatures (
	entity_id VARCHAR(64) NOT NULL,
	model TEXT NOT NULL,
	dimensions INTEGER NOT NULL,
	block BIGINT NOT NULL,
	signatures BLOB NOT NULL,
	CONSTRAINT pk_memory_archive_signatures PRIMARY KEY (entity_id, model, dimensions, block),
	CONSTRAINT fk_memory_archive_signatures_entity_id FOREIGN KEY(entity_id) REFERENCES memory_archives (entity_id)
)
 WITHOUT ROWID
;
CREATE TABLE memory_jobs (
	id VARCHAR(64) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	entity_id VARCHAR(64),
	first_turn BIGINT NOT NULL,
	last_turn BIGINT NOT NULL,
	variant BIGINT NOT NULL,
	text TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	due_at_ms BIGINT NOT NULL,
	promoted BOOLEAN NOT NULL,
	attempts INTEGER NOT NULL,
	holder VARCHAR(64) NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_memory_jobs PRIMARY KEY (id),
	CONSTRAINT fk_memory_jobs_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id),
	CONSTRAINT uq_memory_jobs_entity_id_kind_first_turn_last_turn_variant UNIQUE (entity_id, kind, first_turn, last_turn, variant)
);
CREATE TABLE memory_summaries (
	id VARCHAR(64) NOT NULL,
	entity_id VARCHAR(64) NOT NULL,
	first_turn BIGINT NOT NULL,
	last_turn BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	text TEXT NOT NULL,
	degraded BOOLEAN NOT NULL,
	superseded BOOLEAN NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_memory_summaries PRIMARY KEY (id),
	CONSTRAINT fk_memory_summaries_entity_id FOREIGN KEY(entity_id) REFERENCES memories (id)
);
CREATE TABLE memory_facts (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	topic VARCHAR(64) NOT NULL,
	sub_topic VARCHAR(64) NOT NULL,
	value TEXT NOT NULL,
	updated_at_ms BIGINT NOT NULL,
	place BIGINT NOT NULL,
	superseded_by VARCHAR(64),
	CONSTRAINT pk_memory_facts PRIMARY KEY (id)
);
CREATE TABLE memory_fact_sources (
	fact_id VARCHAR(64) NOT NULL,
	entity_id VARCHAR(64) NOT NULL,
	turn BIGINT NOT NULL,
	at_ms BIGINT NOT NULL,
	CONSTRAINT pk_memory_fact_sources PRIMARY KEY (fact_id, entity_id, turn),
	CONSTRAINT fk_memory_fact_sources_fact_id FOREIGN KEY(fact_id) REFERENCES memory_facts (id)
);
CREATE TABLE responses (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	response_id VARCHAR(64) NOT NULL,
	previous_id VARCHAR(64) NOT NULL,
	state VARCHAR(16) NOT NULL,
	background BOOLEAN NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	holder VARCHAR(64) NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_responses PRIMARY KEY (id),
	CONSTRAINT fk_responses_owner_id FOREIGN KEY(owner_id) REFERENCES memory_owners (owner_id),
	CONSTRAINT uq_responses_owner_id_response_id UNIQUE (owner_id, response_id)
);
CREATE TABLE response_contents (
	id VARCHAR(64) NOT NULL,
	body BLOB NOT NULL,
	input BLOB NOT NULL,
	output BLOB NOT NULL,
	events BLOB NOT NULL,
	CONSTRAINT pk_response_contents PRIMARY KEY (id),
	CONSTRAINT fk_response_contents_id FOREIGN KEY(id) REFERENCES responses (id)
);
CREATE TABLE response_items (
	id VARCHAR(64) NOT NULL,
	item_id VARCHAR(128) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	CONSTRAINT pk_response_items PRIMARY KEY (id, item_id),
	CONSTRAINT fk_response_items_id FOREIGN KEY(id) REFERENCES responses (id)
);
CREATE TABLE conversations (
	id VARCHAR(64) NOT NULL,
	owner_id VARCHAR(64) NOT NULL,
	notes BLOB NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	item_count BIGINT NOT NULL,
	last_position BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_conversations PRIMARY KEY (id),
	CONSTRAINT fk_conversations_owner_id FOREIGN KEY(owner_id) REFERENCES memory_owners (owner_id)
);
CREATE TABLE conversation_items (
	conversation_id VARCHAR(64) NOT NULL,
	position BIGINT NOT NULL,
	item_id VARCHAR(128) NOT NULL,
	json BLOB NOT NULL,
	CONSTRAINT pk_conversation_items PRIMARY KEY (conversation_id, position),
	CONSTRAINT fk_conversation_items_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversations (id),
	CONSTRAINT uq_conversation_items_conversation_id_item_id UNIQUE (conversation_id, item_id)
);
CREATE TABLE response_origins (
	id VARCHAR(64) NOT NULL,
	conversation_id VARCHAR(64) NOT NULL,
	last_position BIGINT NOT NULL,
	CONSTRAINT pk_response_origins PRIMARY KEY (id),
	CONSTRAINT fk_response_origins_id FOREIGN KEY(id) REFERENCES responses (id) ON DELETE CASCADE
);
CREATE TABLE chat_completions (
	owner_id VARCHAR(64) NOT NULL,
	id VARCHAR(64) NOT NULL,
	model VARCHAR(256) NOT NULL,
	labels TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	CONSTRAINT pk_chat_completions PRIMARY KEY (owner_id, id),
	CONSTRAINT fk_chat_completions_owner_id FOREIGN KEY(owner_id) REFERENCES memory_owners (owner_id)
);
CREATE TABLE chat_completion_contents (
	owner_id VARCHAR(64) NOT NULL,
	id VARCHAR(64) NOT NULL,
	completion BLOB NOT NULL,
	messages BLOB NOT NULL,
	CONSTRAINT pk_chat_completion_contents PRIMARY KEY (owner_id, id),
	CONSTRAINT fk_chat_completion_contents_owner_id FOREIGN KEY(owner_id, id) REFERENCES chat_completions (owner_id, id)
);
CREATE TABLE limits (
	subject_kind VARCHAR(16) NOT NULL,
	subject_id VARCHAR(64) NOT NULL,
	requests_per_minute BIGINT,
	tokens_per_minute BIGINT,
	concurrent_requests BIGINT,
	spend_per_day_pusd BIGINT,
	spend_per_month_pusd BIGINT,
	allowed_models TEXT,
	updated_at_ms BIGINT NOT NULL,
	spend_per_week_pusd BIGINT,
	spend_per_period_pusd BIGINT,
	period_start_day BIGINT,
	period_days BIGINT,
	soft_limit_percent BIGINT,
	soft_limits_reached TEXT,
	allowed_model_groups TEXT,
	subject_name TEXT,
	CONSTRAINT pk_limits PRIMARY KEY (subject_kind, subject_id)
);
CREATE TABLE allowances (
	subject_kind VARCHAR(16) NOT NULL,
	subject_id VARCHAR(64) NOT NULL,
	measure VARCHAR(32) NOT NULL,
	window_start_ms BIGINT NOT NULL,
	holder VARCHAR(64) NOT NULL,
	amount BIGINT NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	reserved BIGINT DEFAULT '0' NOT NULL,
	reserved_until_ms BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_allowances PRIMARY KEY (subject_kind, subject_id, measure, window_start_ms, holder)
);
CREATE TABLE budget_notifications (
	id VARCHAR(64) NOT NULL,
	subject_kind VARCHAR(16) NOT NULL,
	subject_id VARCHAR(64) NOT NULL,
	measure VARCHAR(32) NOT NULL,
	window_start_ms BIGINT NOT NULL,
	window_end_ms BIGINT NOT NULL,
	limit_pusd BIGINT NOT NULL,
	spent_pusd BIGINT NOT NULL,
	soft_limit_percent BIGINT NOT NULL,
	reached_at_ms BIGINT NOT NULL,
	attempts INTEGER NOT NULL,
	next_attempt_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_budget_notifications PRIMARY KEY (id)
);
CREATE TABLE model_groups (
	name VARCHAR(64) NOT NULL,
	models TEXT NOT NULL,
	updated_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_model_groups PRIMARY KEY (name)
);
CREATE TABLE usage_records (
	id VARCHAR(64) NOT NULL,
	time_ms BIGINT NOT NULL,
	request_id VARCHAR(128) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	team_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	endpoint VARCHAR(16) NOT NULL,
	requested_model VARCHAR(512) NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	upstream_model VARCHAR(512) NOT NULL,
	step VARCHAR(256) NOT NULL,
	outcome SMALLINT NOT NULL,
	requests SMALLINT NOT NULL,
	attempts INTEGER NOT NULL,
	first_content_ms BIGINT,
	duration_ms BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cache_written_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_pusd BIGINT,
	estimated SMALLINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_usage_records PRIMARY KEY (id)
);
CREATE TABLE usage_days (
	day INTEGER NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	team_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	requests BIGINT NOT NULL,
	failed_requests BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cache_written_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_pusd BIGINT NOT NULL,
	unpriced BIGINT NOT NULL,
	estimated BIGINT DEFAULT '0' NOT NULL,
	cancelled_requests BIGINT DEFAULT '0' NOT NULL,
	first_content_ms BIGINT,
	duration_ms BIGINT,
	first_content_ms_le_10 BIGINT,
	first_content_ms_le_13 BIGINT,
	first_content_ms_le_18 BIGINT,
	first_content_ms_le_24 BIGINT,
	first_content_ms_le_32 BIGINT,
	first_content_ms_le_42 BIGINT,
	first_content_ms_le_56 BIGINT,
	first_content_ms_le_75 BIGINT,
	first_content_ms_le_100 BIGINT,
	first_content_ms_le_130 BIGINT,
	first_content_ms_le_180 BIGINT,
	first_content_ms_le_240 BIGINT,
	first_content_ms_le_320 BIGINT,
	first_content_ms_le_420 BIGINT,
	first_content_ms_le_560 BIGINT,
	first_content_ms_le_750 BIGINT,
	first_content_ms_le_1000 BIGINT,
	first_content_ms_le_1300 BIGINT,
	first_content_ms_le_1800 BIGINT,
	first_content_ms_le_2400 BIGINT,
	first_content_ms_le_3200 BIGINT,
	first_content_ms_le_4200 BIGINT,
	first_content_ms_le_5600 BIGINT,
	first_content_ms_le_7500 BIGINT,
	first_content_ms_le_10000 BIGINT,
	first_content_ms_le_13000 BIGINT,
	first_content_ms_le_18000 BIGINT,
	first_content_ms_le_24000 BIGINT,
	first_content_ms_le_32000 BIGINT,
	first_content_ms_le_42000 BIGINT,
	first_content_ms_le_56000 BIGINT,
	first_content_ms_le_75000 BIGINT,
	first_content_ms_le_100000 BIGINT,
	first_content_ms_le_130000 BIGINT,
	first_content_ms_le_180000 BIGINT,
	first_content_ms_le_240000 BIGINT,
	first_content_ms_le_320000 BIGINT,
	first_content_ms_le_420000 BIGINT,
	first_content_ms_le_560000 BIGINT,
	first_content_ms_le_750000 BIGINT,
	first_content_ms_longer BIGINT,
	duration_ms_le_10 BIGINT,
	duration_ms_le_13 BIGINT,
	duration_ms_le_18 BIGINT,
	duration_ms_le_24 BIGINT,
	duration_ms_le_32 BIGINT,
	duration_ms_le_42 BIGINT,
	duration_ms_le_56 BIGINT,
	duration_ms_le_75 BIGINT,
	duration_ms_le_100 BIGINT,
	duration_ms_le_130 BIGINT,
	duration_ms_le_180 BIGINT,
	duration_ms_le_240 BIGINT,
	duration_ms_le_320 BIGINT,
	duration_ms_le_420 BIGINT,
	duration_ms_le_560 BIGINT,
	duration_ms_le_750 BIGINT,
	duration_ms_le_1000 BIGINT,
	duration_ms_le_1300 BIGINT,
	duration_ms_le_1800 BIGINT,
	duration_ms_le_2400 BIGINT,
	duration_ms_le_3200 BIGINT,
	duration_ms_le_4200 BIGINT,
	duration_ms_le_5600 BIGINT,
	duration_ms_le_7500 BIGINT,
	duration_ms_le_10000 BIGINT,
	duration_ms_le_13000 BIGINT,
	duration_ms_le_18000 BIGINT,
	duration_ms_le_24000 BIGINT,
	duration_ms_le_32000 BIGINT,
	duration_ms_le_42000 BIGINT,
	duration_ms_le_56000 BIGINT,
	duration_ms_le_75000 BIGINT,
	duration_ms_le_100000 BIGINT,
	duration_ms_le_130000 BIGINT,
	duration_ms_le_180000 BIGINT,
	duration_ms_le_240000 BIGINT,
	duration_ms_le_320000 BIGINT,
	duration_ms_le_420000 BIGINT,
	duration_ms_le_560000 BIGINT,
	duration_ms_le_750000 BIGINT,
	duration_ms_longer BIGINT,
	first_content_ms_max BIGINT,
	duration_ms_max BIGINT,
	CONSTRAINT pk_usage_days PRIMARY KEY (day, user_id, team_id, key_id, model, provider)
);
CREATE TABLE usage_hours (
	hour INTEGER NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	team_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	requests BIGINT NOT NULL,
	failed_requests BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cache_written_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_pusd BIGINT NOT NULL,
	unpriced BIGINT NOT NULL,
	estimated BIGINT NOT NULL,
	cancelled_requests BIGINT DEFAULT '0' NOT NULL,
	first_content_ms BIGINT,
	duration_ms BIGINT,
	first_content_ms_le_10 BIGINT,
	first_content_ms_le_13 BIGINT,
	first_content_ms_le_18 BIGINT,
	first_content_ms_le_24 BIGINT,
	first_content_ms_le_32 BIGINT,
	first_content_ms_le_42 BIGINT,
	first_content_ms_le_56 BIGINT,
	first_content_ms_le_75 BIGINT,
	first_content_ms_le_100 BIGINT,
	first_content_ms_le_130 BIGINT,
	first_content_ms_le_180 BIGINT,
	first_content_ms_le_240 BIGINT,
	first_content_ms_le_320 BIGINT,
	first_content_ms_le_420 BIGINT,
	first_content_ms_le_560 BIGINT,
	first_content_ms_le_750 BIGINT,
	first_content_ms_le_1000 BIGINT,
	first_content_ms_le_1300 BIGINT,
	first_content_ms_le_1800 BIGINT,
	first_content_ms_le_2400 BIGINT,
	first_content_ms_le_3200 BIGINT,
	first_content_ms_le_4200 BIGINT,
	first_content_ms_le_5600 BIGINT,
	first_content_ms_le_7500 BIGINT,
	first_content_ms_le_10000 BIGINT,
	first_content_ms_le_13000 BIGINT,
	first_content_ms_le_18000 BIGINT,
	first_content_ms_le_24000 BIGINT,
	first_content_ms_le_32000 BIGINT,
	first_content_ms_le_42000 BIGINT,
	first_content_ms_le_56000 BIGINT,
	first_content_ms_le_75000 BIGINT,
	first_content_ms_le_100000 BIGINT,
	first_content_ms_le_130000 BIGINT,
	first_content_ms_le_180000 BIGINT,
	first_content_ms_le_240000 BIGINT,
	first_content_ms_le_320000 BIGINT,
	first_content_ms_le_420000 BIGINT,
	first_content_ms_le_560000 BIGINT,
	first_content_ms_le_750000 BIGINT,
	first_content_ms_longer BIGINT,
	duration_ms_le_10 BIGINT,
	duration_ms_le_13 BIGINT,
	duration_ms_le_18 BIGINT,
	duration_ms_le_24 BIGINT,
	duration_ms_le_32 BIGINT,
	duration_ms_le_42 BIGINT,
	duration_ms_le_56 BIGINT,
	duration_ms_le_75 BIGINT,
	duration_ms_le_100 BIGINT,
	duration_ms_le_130 BIGINT,
	duration_ms_le_180 BIGINT,
	duration_ms_le_240 BIGINT,
	duration_ms_le_320 BIGINT,
	duration_ms_le_420 BIGINT,
	duration_ms_le_560 BIGINT,
	duration_ms_le_750 BIGINT,
	duration_ms_le_1000 BIGINT,
	duration_ms_le_1300 BIGINT,
	duration_ms_le_1800 BIGINT,
	duration_ms_le_2400 BIGINT,
	duration_ms_le_3200 BIGINT,
	duration_ms_le_4200 BIGINT,
	duration_ms_le_5600 BIGINT,
	duration_ms_le_7500 BIGINT,
	duration_ms_le_10000 BIGINT,
	duration_ms_le_13000 BIGINT,
	duration_ms_le_18000 BIGINT,
	duration_ms_le_24000 BIGINT,
	duration_ms_le_32000 BIGINT,
	duration_ms_le_42000 BIGINT,
	duration_ms_le_56000 BIGINT,
	duration_ms_le_75000 BIGINT,
	duration_ms_le_100000 BIGINT,
	duration_ms_le_130000 BIGINT,
	duration_ms_le_180000 BIGINT,
	duration_ms_le_240000 BIGINT,
	duration_ms_le_320000 BIGINT,
	duration_ms_le_420000 BIGINT,
	duration_ms_le_560000 BIGINT,
	duration_ms_le_750000 BIGINT,
	duration_ms_longer BIGINT,
	first_content_ms_max BIGINT,
	duration_ms_max BIGINT,
	CONSTRAINT pk_usage_hours PRIMARY KEY (hour, user_id, team_id, key_id, model, provider)
);
CREATE TABLE usage_model_hours (
	hour INTEGER NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	requests BIGINT NOT NULL,
	failed_requests BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cache_written_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_pusd BIGINT NOT NULL,
	unpriced BIGINT NOT NULL,
	estimated BIGINT NOT NULL,
	cancelled_requests BIGINT DEFAULT '0' NOT NULL,
	first_content_ms BIGINT,
	duration_ms BIGINT,
	first_content_ms_le_10 BIGINT,
	first_content_ms_le_13 BIGINT,
	first_content_ms_le_18 BIGINT,
	first_content_ms_le_24 BIGINT,
	first_content_ms_le_32 BIGINT,
	first_content_ms_le_42 BIGINT,
	first_content_ms_le_56 BIGINT,
	first_content_ms_le_75 BIGINT,
	first_content_ms_le_100 BIGINT,
	first_content_ms_le_130 BIGINT,
	first_content_ms_le_180 BIGINT,
	first_content_ms_le_240 BIGINT,
	first_content_ms_le_320 BIGINT,
	first_content_ms_le_420 BIGINT,
	first_content_ms_le_560 BIGINT,
	first_content_ms_le_750 BIGINT,
	first_content_ms_le_1000 BIGINT,
	first_content_ms_le_1300 BIGINT,
	first_content_ms_le_1800 BIGINT,
	first_content_ms_le_2400 BIGINT,
	first_content_ms_le_3200 BIGINT,
	first_content_ms_le_4200 BIGINT,
	first_content_ms_le_5600 BIGINT,
	first_content_ms_le_7500 BIGINT,
	first_content_ms_le_10000 BIGINT,
	first_content_ms_le_13000 BIGINT,
	first_content_ms_le_18000 BIGINT,
	first_content_ms_le_24000 BIGINT,
	first_content_ms_le_32000 BIGINT,
	first_content_ms_le_42000 BIGINT,
	first_content_ms_le_56000 BIGINT,
	first_content_ms_le_75000 BIGINT,
	first_content_ms_le_100000 BIGINT,
	first_content_ms_le_130000 BIGINT,
	first_content_ms_le_180000 BIGINT,
	first_content_ms_le_240000 BIGINT,
	first_content_ms_le_320000 BIGINT,
	first_content_ms_le_420000 BIGINT,
	first_content_ms_le_560000 BIGINT,
	first_content_ms_le_750000 BIGINT,
	first_content_ms_longer BIGINT,
	duration_ms_le_10 BIGINT,
	duration_ms_le_13 BIGINT,
	duration_ms_le_18 BIGINT,
	duration_ms_le_24 BIGINT,
	duration_ms_le_32 BIGINT,
	duration_ms_le_42 BIGINT,
	duration_ms_le_56 BIGINT,
	duration_ms_le_75 BIGINT,
	duration_ms_le_100 BIGINT,
	duration_ms_le_130 BIGINT,
	duration_ms_le_180 BIGINT,
	duration_ms_le_240 BIGINT,
	duration_ms_le_320 BIGINT,
	duration_ms_le_420 BIGINT,
	duration_ms_le_560 BIGINT,
	duration_ms_le_750 BIGINT,
	duration_ms_le_1000 BIGINT,
	duration_ms_le_1300 BIGINT,
	duration_ms_le_1800 BIGINT,
	duration_ms_le_2400 BIGINT,
	duration_ms_le_3200 BIGINT,
	duration_ms_le_4200 BIGINT,
	duration_ms_le_5600 BIGINT,
	duration_ms_le_7500 BIGINT,
	duration_ms_le_10000 BIGINT,
	duration_ms_le_13000 BIGINT,
	duration_ms_le_18000 BIGINT,
	duration_ms_le_24000 BIGINT,
	duration_ms_le_32000 BIGINT,
	duration_ms_le_42000 BIGINT,
	duration_ms_le_56000 BIGINT,
	duration_ms_le_75000 BIGINT,
	duration_ms_le_100000 BIGINT,
	duration_ms_le_130000 BIGINT,
	duration_ms_le_180000 BIGINT,
	duration_ms_le_240000 BIGINT,
	duration_ms_le_320000 BIGINT,
	duration_ms_le_420000 BIGINT,
	duration_ms_le_560000 BIGINT,
	duration_ms_le_750000 BIGINT,
	duration_ms_longer BIGINT,
	first_content_ms_max BIGINT,
	duration_ms_max BIGINT,
	CONSTRAINT pk_usage_model_hours PRIMARY KEY (hour, model, provider)
);
CREATE TABLE usage_label_days (
	day INTEGER NOT NULL,
	label VARCHAR(32) NOT NULL,
	value VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	team_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	requests BIGINT NOT NULL,
	failed_requests BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cache_written_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_pusd BIGINT NOT NULL,
	unpriced BIGINT NOT NULL,
	estimated BIGINT NOT NULL,
	CONSTRAINT pk_usage_label_days PRIMARY KEY (day, label, value, user_id, team_id, key_id, model, provider)
);
CREATE TABLE request_log (
	id VARCHAR(64) NOT NULL,
	time_ms BIGINT NOT NULL,
	request_id VARCHAR(128) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	team_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	endpoint VARCHAR(256) NOT NULL,
	status SMALLINT NOT NULL,
	error_code VARCHAR(64) NOT NULL,
	requested_model VARCHAR(512) NOT NULL,
	model VARCHAR(512) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	attempts INTEGER NOT NULL,
	duration_ms BIGINT NOT NULL,
	first_content_ms BIGINT,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cost_pusd BIGINT,
	has_bodies SMALLINT NOT NULL,
	search_text TEXT NOT NULL,
	details BLOB,
	CONSTRAINT pk_request_log PRIMARY KEY (id)
);
CREATE TABLE request_log_labels (
	entry_id VARCHAR(64) NOT NULL,
	label VARCHAR(32) NOT NULL,
	value VARCHAR(64) NOT NULL,
	CONSTRAINT pk_request_log_labels PRIMARY KEY (entry_id, label)
);
CREATE TABLE batches (
	id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	dialect SMALLINT NOT NULL,
	endpoint VARCHAR(64) NOT NULL,
	state VARCHAR(16) NOT NULL,
	input_file_id VARCHAR(64) NOT NULL,
	output_file_id VARCHAR(64) NOT NULL,
	error_file_id VARCHAR(64) NOT NULL,
	output_ttl_s BIGINT,
	own_workers BOOLEAN NOT NULL,
	metadata BLOB NOT NULL,
	headers BLOB NOT NULL,
	errors BLOB NOT NULL,
	total INTEGER NOT NULL,
	succeeded INTEGER NOT NULL,
	errored INTEGER NOT NULL,
	cancelled INTEGER NOT NULL,
	expired INTEGER NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	started_at_ms BIGINT NOT NULL,
	finalizing_at_ms BIGINT NOT NULL,
	cancelling_at_ms BIGINT NOT NULL,
	ended_at_ms BIGINT NOT NULL,
	deleted_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_batches PRIMARY KEY (id)
);
CREATE TABLE batch_requests (
	batch_id VARCHAR(64) NOT NULL,
	number INTEGER NOT NULL,
	custom_id VARCHAR(512) NOT NULL,
	body BLOB NOT NULL,
	provider_batch_id VARCHAR(64) NOT NULL,
	CONSTRAINT pk_batch_requests PRIMARY KEY (batch_id, number)
);
CREATE TABLE batch_results (
	batch_id VARCHAR(64) NOT NULL,
	number INTEGER NOT NULL,
	custom_id VARCHAR(512) NOT NULL,
	outcome SMALLINT NOT NULL,
	status SMALLINT NOT NULL,
	request_id VARCHAR(128) NOT NULL,
	body BLOB NOT NULL,
	CONSTRAINT pk_batch_results PRIMARY KEY (batch_id, number)
);
CREATE TABLE batch_tasks (
	id VARCHAR(64) NOT NULL,
	batch_id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	first INTEGER NOT NULL,
	size INTEGER NOT NULL,
	provider_batch_id VARCHAR(64) NOT NULL,
	not_before_ms BIGINT NOT NULL,
	holder VARCHAR(64) NOT NULL,
	ends_at_ms BIGINT NOT NULL,
	claims INTEGER NOT NULL,
	begun_alone INTEGER NOT NULL,
	CONSTRAINT pk_batch_tasks PRIMARY KEY (id),
	CONSTRAINT fk_batch_tasks_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);
CREATE TABLE provider_batches (
	id VARCHAR(64) NOT NULL,
	batch_id VARCHAR(64) NOT NULL,
	task_id VARCHAR(64) NOT NULL,
	provider VARCHAR(256) NOT NULL,
	model VARCHAR(1024) NOT NULL,
	provider_id VARCHAR(256) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_provider_batches PRIMARY KEY (id),
	CONSTRAINT fk_provider_batches_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);
CREATE TABLE vector_stores (
	id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	name VARCHAR(256) NOT NULL,
	description VARCHAR(512) NOT NULL,
	metadata BLOB NOT NULL,
	expires_after_days INTEGER,
	created_at_ms BIGINT NOT NULL,
	last_active_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	next_chunk BIGINT NOT NULL,
	is_deleted BOOLEAN NOT NULL,
	CONSTRAINT pk_vector_stores PRIMARY KEY (id)
);
CREATE TABLE vector_store_files (
	id VARCHAR(64) NOT NULL,
	store_id VARCHAR(64) NOT NULL,
	user_id VARCHAR(64) NOT NULL,
	key_id VARCHAR(64) NOT NULL,
	file_id VARCHAR(64) NOT NULL,
	batch_id VARCHAR(64) NOT NULL,
	filename VARCHAR(255) NOT NULL,
	state SMALLINT NOT NULL,
	error_code VARCHAR(32) NOT NULL,
	error_message TEXT NOT NULL,
	attributes BLOB NOT NULL,
	max_chunk_tokens INTEGER NOT NULL,
	overlap_tokens INTEGER NOT NULL,
	first_chunk BIGINT NOT NULL,
	chunks INTEGER NOT NULL,
	"indexed" INTEGER NOT NULL,
	usage_bytes BIGINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_vector_store_files PRIMARY KEY (id),
	CONSTRAINT uq_vector_store_files_store_id_file_id UNIQUE (store_id, file_id),
	CONSTRAINT fk_vector_store_files_store_id FOREIGN KEY(store_id) REFERENCES vector_stores (id)
);
CREATE TABLE vector_store_batches (
	id VARCHAR(64) NOT NULL,
	store_id VARCHAR(64) NOT NULL,
	is_cancelled BOOLEAN NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_vector_store_batches PRIMARY KEY (id),
	CONSTRAINT fk_vector_store_batches_store_id FOREIGN KEY(store_id) REFERENCES vector_stores (id)
);
CREATE INDEX ix_allowances_ends_at_ms ON allowances (ends_at_ms);
CREATE INDEX ix_api_keys_prefix ON api_keys (prefix);
CREATE UNIQUE INDEX ix_api_keys_replaces ON api_keys (replaces);
CREATE INDEX ix_api_keys_user_id ON api_keys (user_id);
CREATE INDEX ix_article_comments_article_id ON article_comments (article_id, id);
CREATE INDEX ix_article_comments_thread_id ON article_comments (thread_id);
CREATE INDEX ix_article_comments_user_id ON article_comments (user_id);
CREATE INDEX ix_article_files_file_id ON article_files (file_id);
CREATE INDEX ix_article_group_members_user_id ON article_group_members (user_id);
CREATE INDEX ix_article_groups_creator_id ON article_groups (creator_id);
CREATE INDEX ix_article_requests_at_ms ON article_requests (at_ms);
CREATE INDEX ix_article_requests_user_id ON article_requests (user_id, article_id, at_ms);
CREATE INDEX ix_article_sessions_article_id ON article_sessions (article_id);
CREATE INDEX ix_article_sessions_expires_at_ms ON article_sessions (expires_at_ms);
CREATE UNIQUE INDEX ix_article_sessions_latest ON article_sessions (user_id, article_id, client_id) WHERE latest;
CREATE INDEX ix_article_sessions_user_id ON article_sessions (user_id);
CREATE INDEX ix_article_suggested_files_file_id ON article_suggested_files (file_id);
CREATE INDEX ix_article_suggestions_article_id ON article_suggestions (article_id, id);
CREATE INDEX ix_article_suggestions_user_id ON article_suggestions (user_id);
CREATE INDEX ix_articles_creator_id ON articles (creator_id);
CREATE INDEX ix_articles_deleted_at_ms ON articles (deleted_at_ms);
CREATE INDEX ix_articles_group_id ON articles (group_id);
CREATE INDEX ix_audit_log_at_ms ON audit_log (at_ms, id);
CREATE INDEX ix_audit_log_subject_id ON audit_log (subject_id, at_ms, id);
CREATE INDEX ix_batch_tasks_batch_id ON batch_tasks (batch_id);
CREATE INDEX ix_batch_tasks_ends_at_ms ON batch_tasks (ends_at_ms);
CREATE INDEX ix_batch_tasks_kind ON batch_tasks (kind, id);
CREATE INDEX ix_batches_deleted_at_ms ON batches (deleted_at_ms);
CREATE INDEX ix_batches_user_id ON batches (user_id, dialect, id);
CREATE INDEX ix_budget_notifications_next_attempt_at_ms ON budget_notifications (next_attempt_at_ms);
CREATE INDEX ix_budget_notifications_subject_id ON budget_notifications (subject_id);
CREATE INDEX ix_chat_completions_created ON chat_completions (owner_id, created_at_ms, id);
CREATE INDEX ix_chat_completions_expires_at_ms ON chat_completions (expires_at_ms);
CREATE INDEX ix_console_sessions_ends_at_ms ON console_sessions (ends_at_ms);
CREATE INDEX ix_console_sessions_key_id ON console_sessions (key_id);
CREATE INDEX ix_conversations_expires_at_ms ON conversations (expires_at_ms);
CREATE INDEX ix_conversations_owner_id ON conversations (owner_id, expires_at_ms, id);
CREATE INDEX ix_erasures_due_at_ms ON erasures (due_at_ms);
CREATE INDEX ix_erasures_finished_at_ms ON erasures (finished_at_ms);
CREATE INDEX ix_files_expires_at_s ON files (expires_at_s);
CREATE INDEX ix_files_owner_id ON files (owner_id, created_at_s, id);
CREATE INDEX ix_files_owner_id_purpose ON files (owner_id, purpose, created_at_s, id);
CREATE INDEX ix_invitations_accepted_user_id ON invitations (accepted_user_id);
CREATE INDEX ix_invitations_created_by ON invitations (created_by);
CREATE INDEX ix_invitations_expires_at_ms ON invitations (expires_at_ms);
CREATE INDEX ix_invitations_team_id ON invitations (team_id);
CREATE INDEX ix_memories_owner_id ON memories (owner_id, updated_at_ms, id);
CREATE INDEX ix_memories_unused ON memories (updated_at_ms) WHERE turns = 0 AND epoch = 0;
CREATE INDEX ix_memory_fact_sources_entity_id ON memory_fact_sources (entity_id, turn);
CREATE UNIQUE INDEX ix_memory_facts_live ON memory_facts (owner_id, topic, sub_topic) WHERE superseded_by IS NULL;
CREATE INDEX ix_memory_facts_owner_id ON memory_facts (owner_id, topic, sub_topic);
CREATE INDEX ix_memory_jobs_due_at_ms ON memory_jobs (due_at_ms);
CREATE INDEX ix_memory_jobs_owner_id ON memory_jobs (owner_id);
CREATE UNIQUE INDEX ix_memory_parts_live ON memory_parts (entity_id, turn, first_message) WHERE superseded_at_ms IS NULL;
CREATE INDEX ix_memory_summaries_entity_id ON memory_summaries (entity_id);
CREATE UNIQUE INDEX ix_memory_summaries_live ON memory_summaries (entity_id, last_turn) WHERE NOT superseded;
CREATE INDEX ix_provider_batches_batch_id ON provider_batches (batch_id);
CREATE INDEX ix_provider_batches_task_id ON provider_batches (task_id);
CREATE INDEX ix_request_log_key_id_id ON request_log (key_id, id);
CREATE INDEX ix_request_log_labels_label_value_entry_id ON request_log_labels (label, value, entry_id);
CREATE INDEX ix_request_log_request_id_id ON request_log (request_id, id);
CREATE INDEX ix_request_log_user_id_id ON request_log (user_id, id);
CREATE INDEX ix_response_items_owner_id ON response_items (owner_id, item_id);
CREATE INDEX ix_responses_ends_at_ms ON responses (ends_at_ms) WHERE holder <> '';
CREATE INDEX ix_responses_expires_at_ms ON responses (expires_at_ms);
CREATE INDEX ix_upload_parts_upload_id ON upload_parts (upload_id, first_byte);
CREATE INDEX ix_uploads_expires_at_s ON uploads (expires_at_s);
CREATE INDEX ix_uploads_owner_id ON uploads (owner_id);
CREATE INDEX ix_usage_days_team_id_day ON usage_days (team_id, day);
CREATE INDEX ix_usage_days_user_id_day ON usage_days (user_id, day);
CREATE INDEX ix_usage_hours_key_id_hour ON usage_hours (key_id, hour);
CREATE INDEX ix_usage_hours_team_id_hour ON usage_hours (team_id, hour);
CREATE INDEX ix_usage_hours_user_id_hour ON usage_hours (user_id, hour);
CREATE INDEX ix_usage_label_days_label_day ON usage_label_days (label, day);
CREATE INDEX ix_usage_label_days_user_id_label_day ON usage_label_days (user_id, label, day);
CREATE INDEX ix_users_team_id ON users (team_id);
CREATE INDEX ix_vector_store_batches_store_id ON vector_store_batches (store_id);
CREATE INDEX ix_vector_store_files_batch_id ON vector_store_files (batch_id, id);
CREATE INDEX ix_vector_store_files_file_id ON vector_store_files (file_id);
CREATE INDEX ix_vector_store_files_store_id ON vector_store_files (store_id, id);
CREATE INDEX ix_vector_store_files_user_id ON vector_store_files (user_id);
CREATE INDEX ix_vector_stores_expires_at_ms ON vector_stores (expires_at_ms);
CREATE INDEX ix_vector_stores_user_id ON vector_stores (user_id, id);
