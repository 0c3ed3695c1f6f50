-- Up to which message of a talk a person was told why it is not answered, for each reason: so that a
-- notice about a message comes once. Within a talk messages are dealt with in their order.
CREATE TABLE person_notices (
    conversation_id KEYTEXT NOT NULL,
    reason KEYTEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, reason)
) CLUSTERED;

-- The talks of a person who may have no binding any more.
CREATE INDEX conversations_person ON conversations (organisation_id, connection, external_user_id)
    WHERE kind = 'human';
