-- kind: human (one per binding and outside thread), internal (seat to seat), system (a notice or run).
-- A human one keeps the person it is with: a binding that names somebody else later does not inherit it.
CREATE TABLE conversations (
    id KEYTEXT NOT NULL PRIMARY KEY,
    organisation_id KEYTEXT NOT NULL,
    kind TEXT NOT NULL,
    binding KEYTEXT,
    connection KEYTEXT,
    external_user_id TEXT,
    thread KEYTEXT,
    created_at BIGINT NOT NULL,
    last_message_at BIGINT NOT NULL
) CLUSTERED;
CREATE INDEX conversations_human ON conversations (organisation_id, binding) WHERE kind = 'human';

-- Asked by seat only: whether it takes part in a conversation, and in which it does.
CREATE TABLE participants (
    seat_id KEYTEXT NOT NULL,
    conversation_id KEYTEXT NOT NULL,
    PRIMARY KEY (seat_id, conversation_id)
) CLUSTERED;

-- `number` is drawn under the recipient's inbox lock, so its order is queue order. A message to a
-- seat has a delivery of the same number; a reply to a person has a row of `channel_outbox` instead.
CREATE TABLE messages (
    number SERIALKEY,
    id KEYTEXT NOT NULL,
    organisation_id KEYTEXT NOT NULL,
    conversation_id KEYTEXT NOT NULL,
    origin TEXT NOT NULL,
    sender_seat_id KEYTEXT,
    sender_seat KEYTEXT,
    recipient_seat_id KEYTEXT,
    recipient_seat KEYTEXT,
    binding KEYTEXT,
    external_user_id TEXT,
    parent_id KEYTEXT,
    correlation_id TEXT,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_conversation ON messages (conversation_id, number);

-- A message's way through an inbox: pending (starts a turn), leased (in one), passive (waits for the
-- next turn without starting it), done, dead. `open` is 1 for the first three, which count to the cap.
-- A passive one that was handed over with a turn is named by that turn's delivery until it completes.
CREATE TABLE deliveries (
    number BIGINT NOT NULL PRIMARY KEY,
    message_id KEYTEXT NOT NULL,
    seat_id KEYTEXT NOT NULL,
    conversation_id KEYTEXT NOT NULL,
    state TEXT NOT NULL,
    open INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    due_at BIGINT NOT NULL,
    generation BIGINT,
    lease_expires_at BIGINT,
    execution_id KEYTEXT,
    carried_by BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL
) CLUSTERED;
CREATE INDEX deliveries_inbox ON deliveries (seat_id, state, number) WHERE open = 1;
CREATE INDEX deliveries_carried ON deliveries (carried_by) WHERE carried_by IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (seat_id, number) WHERE state = 'dead';
CREATE INDEX deliveries_expiry ON deliveries (lease_expires_at) WHERE state = 'leased';

-- Replies on their way to people. queued, succeeded, failed or unknown; an unknown one is never resent.
CREATE TABLE channel_outbox (
    number BIGINT NOT NULL PRIMARY KEY,
    organisation_id KEYTEXT NOT NULL,
    seat_id KEYTEXT NOT NULL,
    connection KEYTEXT NOT NULL,
    binding KEYTEXT NOT NULL,
    external_user_id TEXT NOT NULL,
    conversation_id KEYTEXT NOT NULL,
    message_id KEYTEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at BIGINT NOT NULL,
    claimed_until BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
) CLUSTERED;
CREATE INDEX channel_outbox_queued ON channel_outbox (due_at, number) WHERE state = 'queued';
