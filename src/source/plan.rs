//! Cutting the tables into chunks without reading them: borders come from a sample of a few hundred blocks.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::{Scope, SourceError, Table, Tables};

/// A piece of the copy as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChunk {
    /// Which sessions.
    pub scope: Scope,
    /// Rows of `device_publish_msg` that the sample promises; `None` where nothing is known.
    pub estimated_rows: Option<u64>,
}

/// Blocks read for a sample of a table: enough for a thousand borders, a few MB at most.
const SAMPLE_BLOCKS: f64 = 300.0;
/// Rows of a chunk: some 100 ms of copying, so that progress is fine-grained and a claim costs nothing beside it.
const CHUNK_ROWS: u64 = 20_000;
/// A border needs some sampled rows on either side to mean anything.
const SAMPLED_ROWS_A_CHUNK: u64 = 8;
/// Ids of a named list that make up one chunk.
const LISTED_CLIENTS: usize = 500;

struct Sample {
    estimated_rows: u64,
    borders: Vec<String>,
}

impl Tables {
    /// Chunks that cover every session exactly once; the first and the last are open-ended.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn plan(&self, connection: &mut PgConnection) -> Result<Vec<PlannedChunk>, SourceError> {
        let messages = sample(connection, &self.messages).await?;
        let contexts = sample(connection, &self.contexts).await?;
        let borders = self.order(connection, [messages.borders, contexts.borders].concat()).await?;
        let chunks = borders.len() as u64 + 1;
        let mut bounds = vec![None];
        bounds.extend(borders.into_iter().map(Some));
        bounds.push(None);
        let planned = bounds.windows(2).map(|pair| PlannedChunk {
            scope: Scope { lower: pair[0].clone(), upper: pair[1].clone(), ..Scope::everything() },
            estimated_rows: Some(messages.estimated_rows / chunks),
        });
        Ok(planned.collect())
    }

    /// The borders without repetition, in the order in which ranges of `client_id` are compared.
    async fn order(&self, connection: &mut PgConnection, borders: Vec<String>) -> Result<Vec<String>, SourceError> {
        let collate = self.messages.collation.as_ref().map_or(String::new(), |name| format!(" collate {name}"));
        let sql = format!("select border from (select distinct border{collate} as border from unnest($1::text[]) border) b order by border{collate}");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .persistent(false)
            .bind(borders)
            .fetch_all(connection)
            .await
            .map_err(SourceError::statement("ordering the borders of the chunks"))
    }
}

/// Chunks for a named list of sessions.
pub fn plan_listed(clients: &[String]) -> Vec<PlannedChunk> {
    let chunks = clients.chunks(LISTED_CLIENTS);
    chunks.map(|ids| PlannedChunk { scope: Scope { listed: Some(ids.to_vec()), ..Scope::everything() }, estimated_rows: None }).collect()
}

async fn sample(connection: &mut PgConnection, table: &Table) -> Result<Sample, SourceError> {
    let doing = "sampling the tables";
    let blocks: f64 = sqlx::query_scalar(
        "select (coalesce((select sum(pg_relation_size(relid)) from pg_partition_tree($1::oid)), pg_relation_size($1::oid))
             / current_setting('block_size')::int8)::float8",
    )
    .persistent(false)
    .bind(sqlx::postgres::types::Oid(table.oid))
    .fetch_one(&mut *connection)
    .await
    .map_err(SourceError::statement(doing))?;
    let percent = (100.0 * SAMPLE_BLOCKS / blocks.max(1.0)).min(100.0);
    let from = format!("from {} tablesample system ({percent}) repeatable (1)", table.name);
    let sampled: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) {from}")))
        .persistent(false)
        .fetch_one(&mut *connection)
        .await
        .map_err(SourceError::statement(doing))?;
    let sampled = u64::try_from(sampled).unwrap_or(0);
    // Lossless: counts of rows are far below 2^53.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let estimated_rows = (sampled as f64 * 100.0 / percent) as u64;
    let chunks = estimated_rows.div_ceil(CHUNK_ROWS).min(sampled / SAMPLED_ROWS_A_CHUNK);
    if chunks < 2 {
        return Ok(Sample { estimated_rows, borders: Vec::new() });
    }
    #[allow(clippy::cast_precision_loss)]
    let fractions: Vec<f64> = (1..chunks).map(|n| n as f64 / chunks as f64).collect();
    // As bytes, unconverted: a SQL_ASCII database may hold ids that are no text, and those are no borders.
    let row = sqlx::query(AssertSqlSafe(format!(
        "select array(select convert_to(border, 'SQL_ASCII') from unnest(borders) border where border is not null)
         from (select percentile_disc($1::float8[]) within group (order by client_id)::text[] as borders {from}) sample"
    )))
    .persistent(false)
    .bind(fractions)
    .fetch_one(connection)
    .await
    .map_err(SourceError::statement(doing))?;
    let borders: Vec<Vec<u8>> = row.get(0);
    Ok(Sample { estimated_rows, borders: borders.into_iter().filter_map(|border| String::from_utf8(border).ok()).collect() })
}
