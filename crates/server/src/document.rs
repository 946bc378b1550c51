//! The description of the API, made from the endpoints and the types of their answers.

use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

#[derive(OpenApi)]
#[openapi(
    info(title = "Steno", description = "Recordings to transcripts, on this machine."),
    paths(
        crate::openai::transcriptions,
        crate::openai::translations,
        crate::openai::models,
        crate::openai::model,
        crate::api::add,
        crate::api::list,
        crate::api::one,
        crate::api::remove,
        crate::api::events,
        crate::api::transcript,
        crate::router::health,
        crate::router::metrics,
        openapi
    )
)]
struct Document;

/// This description.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "An OpenAPI document.")))]
#[allow(dead_code, reason = "the router answers with `document`")]
fn openapi() {}

/// The OpenAPI document.
pub fn document() -> utoipa::openapi::OpenApi {
    const TOKEN: &str = "token";
    let mut document = Document::openapi();
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme(TOKEN, scheme);
    // None is needed by default, on this machine.
    let with_token = SecurityRequirement::new(TOKEN, Vec::<String>::new());
    document.security = Some(vec![SecurityRequirement::default(), with_token]);
    document
}
