"""Operations inside other libraries, one module for each; each requires its library, an extra of this package."""
