"""Git as the database of record: repositories, trees, patches, frozen sources, histories."""
